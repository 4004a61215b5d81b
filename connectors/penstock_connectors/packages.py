"""The packages that connectors need, which extras of penstock bring."""

from __future__ import annotations

from penstock_spark.connecting.formats import Package

FASTAVRO = Package("Avro files", "fastavro", "fastavro", "avro")
FASTAVRO_OF_RECORDS = Package("records that AvroDeserializer reads", "fastavro", "fastavro", "avro")
GOOGLE_CRC32C = Package("TFRecord files", "google-crc32c", "google_crc32c", "tfrecord")
DELTALAKE = Package("Delta tables", "deltalake", "deltalake", "delta")
PYICEBERG = Package("Iceberg tables", "pyiceberg", "pyiceberg", "iceberg")
CONFLUENT_KAFKA = Package("topics of Kafka", "confluent-kafka", "confluent_kafka", "kafka")
SQLALCHEMY = Package("tables of databases", "sqlalchemy", "sqlalchemy", "databases")
PSYCOPG = Package("tables of PostgreSQL", "psycopg", "psycopg", "postgres")
