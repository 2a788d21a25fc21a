"""
The library without ROS: models, scenarios and parameters as Python objects.

Run it as a script, or cell by cell in an editor that knows ``# %%``. It needs NumPy, SciPy, numba,
PyYAML and tqdm; the last cell draws into out/library.png with matplotlib.
"""

# %%
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from longreach_boom.modes import natural_modes
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import HangingLoad
from longreach_boom.scenario import Scenario as BoomScenario
from longreach_boom.simulation import simulate as simulate_boom
from longreach_crane.parameters import load_machinery
from longreach_crane.scenario import Scenario as CraneScenario
from longreach_crane.scenario import SetPoint
from longreach_crane.simulation import simulate as simulate_crane

# %% A boom, and 90 kg that are released from its tip after 1 s. A file: load_boom('my_boom.yaml').
boom = load_boom()
release = BoomScenario(duration=10.0, pose='site', loads=(HangingLoad(mass=90.0),), release=(1.0,))
stiff = simulate_boom(boom, release)
print(f'the tip moves over {np.ptp(stiff.column("tip_z")):.3f} m')

# %% Another parameter: softer oil. Parameters are immutable; with_value returns new ones.
soft = simulate_boom(boom.with_value('oil.bulk_modulus', 0.7e9), release)
print(f'with half the bulk modulus over {np.ptp(soft.column("tip_z")):.3f} m')

# %% Natural frequencies in the same pose, pistons sliding, beside finite elements.
modes = natural_modes(boom, boom.pose('site'), pistons='free', count=2)
print('natural frequencies [Hz]', modes.frequencies.round(3), modes.finite_element.round(3))

# %% A crane with a load of 300 kg: observer and regulator are designed for it.
machinery = load_machinery().with_value('crane.load_mass', 300.0)
move = CraneScenario(duration=30.0, set_points=(SetPoint(time=0.0, car_position=3.0),))
crane = simulate_crane(machinery, move)
swing = np.degrees(np.abs(crane.column('angle')).max())
print(f'the crane stops at {crane.column("car_position")[-1]:.3f} m, swing {swing:.1f} deg')

# %% A figure.
figure = Figure(layout='constrained')
axes = figure.subplots()
axes.plot(stiff.column('time'), stiff.column('tip_z'), label='bulk modulus 1.4 GPa')
axes.plot(soft.column('time'), soft.column('tip_z'), label='bulk modulus 0.7 GPa')
axes.set(xlabel='time [s]', ylabel='height of the tip [m]')
axes.legend()
Path('out').mkdir(exist_ok=True)
figure.savefig('out/library.png')
