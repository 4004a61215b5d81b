"""Parts that formats share in reading: open sources, the types of their elements, and the staging of bounded ones."""
