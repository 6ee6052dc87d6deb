"""Which terms the cloud says the disks of this machine have: metadata, APIs, the file of terms."""

from disksla.clouds.detection.findings import KUBERNETES, Detected
from disksla.clouds.detection.kubernetes import detect_kubernetes
from disksla.clouds.detection.providers import PROVIDERS, WITH_CREDENTIALS_FILE, exchanges_of
from disksla.clouds.detection.terms_file import DetectedTermsFile, terms_file
from disksla.promise.terms_file import decode_terms_file, encode_terms_file
