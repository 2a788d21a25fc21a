"""
Two cameras that track circular markers, Henikl et al. (2015), section 4.2.

``arrays``, ``cameras``, ``geometry``, ``positions``, ``circles``
                                        checks; the pinhole model; poses, planes, rays; points in
                                        space; circles in images
``boards``, ``intrinsics``, ``calibration``
                                        intrinsics from checkerboards
``reference``, ``localisation``, ``adjustment``, ``prediction``, ``localisation_advice``
                                        poses from reference points; how good they are, and why not
``edges``, ``shapes``, ``ellipses``, ``detection``
                                        one marker in one image
``refinement``, ``marker_model``, ``marker_samples``, ``pinhole``
                                        its maximum-likelihood fit
``tracking``, ``image_motion``, ``appearance``, ``association``, ``naming``
                                        markers through time
``stereo``                              markers in space
``stereo_pairing``, ``following``, ``tracks``, ``tracking_report``, ``clock_offset``,
``agreement``, ``known_distance``       pairs of images; how tracking begins; tracks as a table;
                                        clocks and poses of two cameras compared; a known length
``rig``                                 cameras, plane, markers and numbers of the tracker
``scene``, ``rendering``, ``drawing``, ``sequences``
                                        what cameras would see of given markers; the same as files
``images``, ``sources``, ``streams``    image messages as arrays; files, folders, cameras
``overlay``, ``sheet``                  pictures of what was found; markers to be printed
``tracker_node``, ``camera_node``, ``simulated_node``, ``video_node``, ``conversions``, ``nodes``
                                        the same over ROS
``commands``, ``setup_commands``, ``detection_commands``, ``tracking_commands``,
``check_commands``, ``simulation_commands``, ``demo_commands``, ``remote_commands``, ``remote``
                                        ``longreach vision``
``arguments``, ``track_output``, ``overlay_files``, ``recording``, ``figures``, ``setup_figures``,
``preset_figures``                      what its subcommands share; figure of ``longreach plot``
"""
