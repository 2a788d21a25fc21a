"""A flexible boom with hydraulic cylinders."""
SUMMARY = 'a flexible concrete-pump boom'
def configure(parser):
    pass
