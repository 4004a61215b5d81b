"""Models in pipelines (Beam's ``apache_beam.ml``): `penstock.ml.inference`."""
