"""
An excavator that digs: the machine of Ozunlu's thesis (2009), corrected, with hydraulics.

``parameters``, ``linkage``, ``soil``   the machine, how its cylinders move it, what the soil resists
``motion``, ``simulation``              equations of motion, and runs through time
``scenario``, ``forces``                what happens in a run
``inverse``, ``cohesion``               loads of a prescribed motion; cohesion from measurements
``teleoperation``                       joysticks and joint velocities as valve commands
``description``                         the machine for RViz
``plant_node``, ``operator_node``, ``conversions``, ``nodes``
                                        the same over ROS
``commands``, ``figures``, ``recording``
                                        ``longreach excavator``
"""
