"""The exceptions of the package. Their text is for the user: the thing, the value, the way out."""


class LlaFusionError(Exception):
    """Anything this package refuses; the command line prints it as one sentence, without a traceback."""


class InputError(LlaFusionError, ValueError):
    """Data handed in does not fit: wrong shape, not finite, out of range."""


class BundleError(LlaFusionError):
    """A model file is truncated, altered, foreign or of another version."""


class DatasetError(LlaFusionError):
    """A data set folder is missing or incomplete."""


class BagError(LlaFusionError):
    """A bag cannot be read, written or fused."""
