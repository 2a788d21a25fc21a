"""Placeholder while the controller is written."""
class Trajectory:
    @classmethod
    def of(cls, waypoints): raise NotImplementedError
class JointController:
    pass
