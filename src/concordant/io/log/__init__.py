"""Files and tables as rows with named columns."""
