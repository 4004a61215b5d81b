"""Transforms for whole files: match, read, write (Beam's ``apache_beam.io.fileio``)."""

from penstock.io.files.file_naming import FileNaming as FileNaming
from penstock.io.files.file_naming import default_file_naming as default_file_naming
from penstock.io.files.file_naming import destination_prefix_naming as destination_prefix_naming
from penstock.io.files.file_naming import prefix_naming as prefix_naming
from penstock.io.files.file_naming import single_file_naming as single_file_naming
from penstock.io.files.match_files import EmptyMatchTreatment as EmptyMatchTreatment
from penstock.io.files.match_files import MatchAll as MatchAll
from penstock.io.files.match_files import MatchContinuously as MatchContinuously
from penstock.io.files.match_files import MatchFiles as MatchFiles
from penstock.io.files.match_files import ReadableFile as ReadableFile
from penstock.io.files.match_files import ReadMatches as ReadMatches
from penstock.io.files.write_files import FileAttributes
from penstock.io.files.write_files import FileResult as FileResult
from penstock.io.files.write_files import FileSink as FileSink
from penstock.io.files.write_files import TextSink as TextSink
from penstock.io.files.write_files import WriteToFiles as WriteToFiles
from penstock.utils.timestamp import MAX_TIMESTAMP as MAX_TIMESTAMP

FileMetadata = FileAttributes
