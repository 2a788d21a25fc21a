"""
An excavator that digs: the machine of Ozunlu's thesis (2009), corrected, with hydraulics.

``parameters``, ``linkage``, ``soil``   the machine, how its cylinders move it, what the soil resists
``motion``, ``simulation``, ``results`` equations of motion, runs through time, tables of them
``scenario``, ``forces``                what happens in a run
``statics``, ``inverse``, ``cohesion``  a pose at rest; loads of a motion; cohesion from measurements
``teleoperation``                       joysticks and joint velocities as valve commands
``description``, ``visuals``            the machine for RViz
``plant_node``, ``operator_node``, ``conversions``, ``nodes``
                                        the same over ROS
``commands``, ``study_commands``, ``figures``, ``recording``, ``remote``
                                        ``longreach excavator``
"""
