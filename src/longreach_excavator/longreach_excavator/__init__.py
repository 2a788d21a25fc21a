"""
An excavator that digs: the machine of Ozunlu's thesis (2009), corrected, with hydraulics.

``parameters``, ``linkage``, ``soil``   the machine, how cylinders move it, what soil resists
``motion``                              equations of motion
``simulation``, ``results``             runs through time, and tables of them
``scenario``, ``forces``                what happens in a run
``statics``, ``inverse``, ``cohesion``  a pose at rest, loads of a motion, cohesion of the soil
``teleoperation``                       joysticks and joint velocities as valve commands
``description``, ``visuals``            the machine for RViz
``plant_node``, ``operator_node``, ``conversions``, ``nodes``
                                        the same over ROS
``commands``, ``study_commands``, ``figures``, ``recording``, ``remote``
                                        ``longreach excavator``
"""
