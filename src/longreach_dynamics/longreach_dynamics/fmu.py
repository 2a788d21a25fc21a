r"""
Models in C as FMUs, Functional Mock-up Units of FMI 2.0, for Simulink, Dymola, OpenModelica.

An FMU is an archive with a description in XML and a library that is compiled here. It supports
model exchange (the tool integrates) and co-simulation (RK4 with a fixed step inside). The client
gives variables and the C99 text of two functions of states x, inputs u and parameters p; both
return 0, or 1 where there is no result::

    static int model_derivatives(const double *x, const double *u, const double *p, double *dx);
    static int model_outputs(const double *x, const double *u, const double *p, double *y);

Models are continuous: without events, discrete states and time as an argument. The headers of the
standard are those of the Python package fmpy.

Source: Modelica Association, Functional Mock-up Interface for Model Exchange and Co-Simulation,
version 2.0.4 (2022).
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import itertools
import math
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from longreach_dynamics.errors import InputError, LongreachError, check_distinct

STEP = 'integration_step'
"""Name of the parameter with the longest step of RK4 in co-simulation [s]."""

# Modulus of the fastest eigenvalue times the step of RK4. It is stable up to 2.8, and loses
# 5e-8 of a vibration's phase in each radian at this value. Largest step that can be set, in steps
# that are chosen so: below that bound.
_PHASE, _MOST_STEPS = 0.05, 50.0
COMPILERS = ('gcc', 'cc', 'clang')
_FLAGS = ('-std=c99', '-O2', '-shared', '-fPIC', '-fvisibility=hidden')
_PLATFORMS = {
    ('Linux', 'x86_64'): ('linux64', '.so'),
    ('Windows', 'AMD64'): ('win64', '.dll'),
    ('Darwin', 'x86_64'): ('darwin64', '.dylib'),
}
_NAME = re.compile(r'[A-Za-z_]\w*')


class Variable(NamedTuple):
    """A state, an input, an output or a parameter."""

    name: str  # an identifier
    unit: str  # in SI, such as ``N m^2`` or ``rad/s``; ``1`` for none
    description: str
    start: float = 0.0  # of states, inputs and parameters
    is_output: bool = False  # of states: whether it is an output, too
    bounds: tuple[float, float] = (-math.inf, math.inf)  # of parameters


@dataclasses.dataclass(frozen=True)
class FmuModel:
    """What an FMU is made of; InputError for names and start values that it cannot have."""

    name: str
    description: str
    states: tuple[Variable, ...]  # in the order of x
    inputs: tuple[Variable, ...]  # u
    outputs: tuple[Variable, ...]  # y
    parameters: tuple[Variable, ...]  # p
    code: str  # C99: model_derivatives and model_outputs; math.h is included
    step: float  # longest step of RK4 in co-simulation [s]
    duration: float = 10.0  # of an experiment by default [s]

    def __post_init__(self) -> None:
        parts = (self.states, self.inputs, self.outputs, self.parameters, [_step(self)])
        variables = list(itertools.chain(*parts))
        names = [v.name for v in variables]
        for name in (self.name, *names):
            if not _NAME.fullmatch(name):
                raise InputError(f'{name!r} is no identifier, which names of an FMU must be')
        check_distinct('a variable of the FMU', names)
        for v in variables:
            low, high = v.bounds
            if not (low <= v.start <= high and math.isfinite(v.start)):
                raise InputError(
                    f'{v.name} = {v.start} at the start, allowed: finite, {_range(low, high)}'
                )


def rk4_step(fastest: float) -> float:
    """Return a step [s], 1, 2 or 5 times a power of ten, for the fastest eigenvalue [1/s]."""
    most = _PHASE / fastest
    power = 10.0 ** math.floor(math.log10(most))
    return float(f'{max(n for n in (1, 2, 5) if n == 1 or n * power <= most) * power:.0e}')


def write_fmu(file: str | Path, model: FmuModel) -> None:
    """
    Compile a model and write its FMU.

    LongreachError without a C compiler, for a platform that FMI 2.0 has no name for, and when the
    compiler fails.
    """
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise LongreachError(
            f'an FMU needs a C compiler, looked for: {", ".join(COMPILERS)}; install one'
        )
    key = platform.system(), platform.machine()
    if key not in _PLATFORMS or sys.maxsize < 2**32:
        raise LongreachError(
            f'FMI 2.0 has no name for {" ".join(key)}, allowed:'
            f' {", ".join(" ".join(one) for one in _PLATFORMS)}'
        )
    directory, suffix = _PLATFORMS[key]
    # The headers of the standard.
    headers = importlib.resources.files('fmpy') / 'c-code'
    body = _source(model)
    described = '\n'.join(_description(model, ''))
    guid = f'{{{uuid.uuid5(uuid.NAMESPACE_URL, described + body)}}}'
    source = body.replace(_GUID, guid)
    with tempfile.TemporaryDirectory() as name:
        made, library = Path(name) / 'model.c', Path(name) / f'{model.name}{suffix}'
        made.write_text(source, encoding='utf-8')
        words = [compiler, *_FLAGS, '-I', str(headers), str(made), '-o', str(library), '-lm']
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LongreachError(
                f'{compiler} failed on the code of the model: '
                + ' '.join(done.stderr.split())[:500]
            )
        binary = library.read_bytes()
    with zipfile.ZipFile(file, 'w', zipfile.ZIP_DEFLATED) as archive:
        for path, content in (
            ('modelDescription.xml', '\n'.join(_description(model, guid)).encode()),
            ('sources/model.c', source.encode()),
            (f'binaries/{directory}/{model.name}{suffix}', binary),
        ):
            # Without the time of day: equal models give equal files.
            archive.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED)


# --- description ----------------------------------------------------------------------------


def _attributes(**values: object) -> str:
    """Return attributes of XML."""
    return ''.join(f' {name}={quoteattr(str(value))}' for name, value in values.items())


def _description(model: FmuModel, guid: str) -> Iterator[str]:
    """Yield the lines of modelDescription.xml."""
    states, outputs = len(model.states), len(model.outputs)
    parameters = (*model.parameters, _step(model))
    units = [v.unit for v in (*model.states, *model.inputs, *model.outputs, *parameters)]
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<fmiModelDescription' + _attributes(
        fmiVersion='2.0',
        modelName=model.name,
        guid=guid,
        description=model.description,
        generationTool='Longreach',
        variableNamingConvention='structured',
        numberOfEventIndicators=0,
    ) + '>'  # fmt: skip
    ability = _attributes(
        modelIdentifier=model.name,
        canGetAndSetFMUstate='true',
        canNotUseMemoryManagementFunctions='true',
    )
    source = '<SourceFiles><File name="model.c"/></SourceFiles>'
    yield f'  <ModelExchange{ability}>{source}</ModelExchange>'
    yield (
        f'  <CoSimulation{ability} canHandleVariableCommunicationStepSize="true">{source}'
        '</CoSimulation>'
    )
    yield '  <UnitDefinitions>'
    for unit in dict.fromkeys(units):
        if unit != '1':
            yield f'    <Unit{_attributes(name=unit)}/>'
    yield '  </UnitDefinitions>'
    yield '  <DefaultExperiment' + _attributes(
        startTime=0.0, stopTime=model.duration, stepSize=model.step
    ) + '/>'  # fmt: skip
    yield '  <ModelVariables>'
    kinds = _variables(model, parameters)
    for reference, (variable, kind, real) in enumerate(kinds):
        head = _attributes(
            name=variable.name, valueReference=reference, description=variable.description, **kind
        )
        shown_unit = {} if variable.unit == '1' else {'unit': variable.unit}
        inner = _attributes(**shown_unit, **real)
        yield f'    <ScalarVariable{head}><Real{inner}/></ScalarVariable>'
    yield '  </ModelVariables>'
    derivatives = range(states + 1, 2 * states + 1)
    first = 2 * states + len(model.inputs) + 1
    calculated = range(first, first + outputs)
    shown = [i for i, v in enumerate(model.states, 1) if v.is_output]
    yield '  <ModelStructure>'
    for tag, indices in (
        ('Outputs', [*shown, *calculated]),
        ('Derivatives', derivatives),
        ('InitialUnknowns', [*derivatives, *calculated]),
    ):
        if indices:
            inside = ''.join(f'<Unknown index="{i}"/>' for i in indices)
            yield f'    <{tag}>{inside}</{tag}>'
    yield '  </ModelStructure>'
    yield '</fmiModelDescription>'


def _step(model: FmuModel) -> Variable:
    """Return the parameter that all FMUs have; with the others' start values RK4 is stable."""
    bounds = 1e-9, _MOST_STEPS * model.step
    text = 'longest step of RK4 in co-simulation; where other parameters make the model faster'
    return Variable(STEP, 's', f'{text}, a shorter one is needed', model.step, bounds=bounds)


def _variables(
    model: FmuModel, parameters: Sequence[Variable]
) -> Iterable[tuple[Variable, dict[str, str], dict[str, object]]]:
    """Yield variables with attributes of ScalarVariable and of Real; places are references."""

    def row(
        variable: Variable, causality: str, kind: str, initial: str = '', **real: object
    ) -> tuple[Variable, dict[str, str], dict[str, object]]:
        attributes = {'causality': causality, 'variability': kind}
        return variable, attributes | ({'initial': initial} if initial else {}), real

    for v in model.states:
        causality = 'output' if v.is_output else 'local'
        yield row(v, causality, 'continuous', 'exact', start=v.start)
    for index, v in enumerate(model.states, 1):
        rate = Variable(f'der({v.name})', '1', f'derivative of {v.name}')
        yield row(rate, 'local', 'continuous', 'calculated', derivative=index)
    for v in model.inputs:
        yield row(v, 'input', 'continuous', start=v.start)
    for v in model.outputs:
        yield row(v, 'output', 'continuous', 'calculated')
    for v in parameters:
        bounds = zip(('min', 'max'), v.bounds, strict=True)
        limit = {name: bound for name, bound in bounds if math.isfinite(bound)}
        yield row(v, 'parameter', 'tunable', 'exact', start=v.start, **limit)


# --- code -----------------------------------------------------------------------------------

_GUID = '@GUID@'


def _source(model: FmuModel) -> str:
    """Return the text of sources/model.c."""
    parameters = (*model.parameters, _step(model))
    starts = {
        'state_starts': [v.start for v in model.states],
        'input_starts': [v.start for v in model.inputs],
        'parameter_starts': [v.start for v in parameters],
        'parameter_low': [v.bounds[0] for v in parameters],
        'parameter_high': [v.bounds[1] for v in parameters],
    }
    lines = [
        f'/* {model.description.replace("*/", "* /")} */',
        '#include <math.h>',
        '#include <stdlib.h>',
        '#include <string.h>',
        '#include "fmi2Functions.h"',
        '',
        f'#define MODEL_GUID "{_GUID}"',
        f'#define STATES {len(model.states)}',
        f'#define INPUTS {len(model.inputs)}',
        f'#define OUTPUTS {len(model.outputs)}',
        f'#define PARAMETERS {len(model.parameters) + 1} /* the last: longest step of RK4 [s] */',
    ]
    for name, values in starts.items():
        inside = ', '.join(map(repr, values)).replace('inf', 'HUGE_VAL') or '0.0'
        lines.append(f'static const double {name}[] = {{{inside}}};')
    allowed = ', '.join(f'"{v.name}, allowed: {_range(*v.bounds)}"' for v in parameters)
    lines.append(f'static const char *const parameter_allowed[] = {{{allowed}}};')
    return '\n'.join([*lines, '', model.code, _INTERFACE])


def _range(low: float, high: float) -> str:
    """Return bounds in words."""
    return f'{"above 0" if 0.0 < low < sys.float_info.min else f"from {low:g}"} to {high:g}'


_INTERFACE = r"""
/* Functions of FMI 2.0. Value references: states, derivatives, inputs, outputs, parameters. */

#define DERIVATIVES_AT STATES
#define INPUTS_AT (2 * STATES)
#define OUTPUTS_AT (INPUTS_AT + INPUTS)
#define PARAMETERS_AT (OUTPUTS_AT + OUTPUTS)
#define VALUES (PARAMETERS_AT + PARAMETERS)

typedef struct {
    double values[VALUES];
    int is_current; /* whether derivatives and outputs are those of the other values */
} State;

typedef struct {
    State state;
    char *name;
    fmi2CallbackLogger logger;
    fmi2ComponentEnvironment environment;
} Instance;

static fmi2Status failed(Instance *instance, const char *message)
{
    if (instance->logger)
        instance->logger(instance->environment, instance->name, fmi2Error, "logStatusError",
                         "%s", message);
    return fmi2Error;
}

static void set_starts(State *state)
{
    memset(state, 0, sizeof *state);
    memcpy(state->values, state_starts, STATES * sizeof(double));
    memcpy(state->values + INPUTS_AT, input_starts, INPUTS * sizeof(double));
    memcpy(state->values + PARAMETERS_AT, parameter_starts, PARAMETERS * sizeof(double));
}

static int derivatives_at(Instance *instance, const double *x, double *dx)
{
    const double *values = instance->state.values;
    int i;
    if (model_derivatives(x, values + INPUTS_AT, values + PARAMETERS_AT, dx))
        return 1;
    for (i = 0; i < STATES; i++)
        if (!isfinite(dx[i]))
            return 1;
    return 0;
}

static fmi2Status update(Instance *instance)
{
    double *values = instance->state.values;
    if (instance->state.is_current)
        return fmi2OK;
    if (derivatives_at(instance, values, values + DERIVATIVES_AT) ||
        model_outputs(values, values + INPUTS_AT, values + PARAMETERS_AT, values + OUTPUTS_AT))
        return failed(instance, "the equations have no finite solution for this state and these "
                                "parameters");
    instance->state.is_current = 1;
    return fmi2OK;
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n,
                               const fmi2String categories[]) { return fmi2OK; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid,
                              fmi2String resources, const fmi2CallbackFunctions *functions,
                              fmi2Boolean visible, fmi2Boolean logging)
{
    Instance *instance = calloc(1, sizeof(Instance));
    if (!instance)
        return NULL;
    instance->name = calloc(1, strlen(name) + 1);
    if (!instance->name) {
        free(instance);
        return NULL;
    }
    strcpy(instance->name, name);
    if (functions) {
        instance->logger = functions->logger;
        instance->environment = functions->componentEnvironment;
    }
    if (strcmp(guid, MODEL_GUID) != 0) {
        failed(instance, "the GUID is not that of this FMU");
        fmi2FreeInstance(instance);
        return NULL;
    }
    set_starts(&instance->state);
    return instance;
}

void fmi2FreeInstance(fmi2Component c)
{
    if (c)
        free(((Instance *)c)->name);
    free(c);
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean has_tolerance, fmi2Real tolerance,
                               fmi2Real start, fmi2Boolean has_stop, fmi2Real stop)
{
    return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return update(c); }
fmi2Status fmi2Terminate(fmi2Component c) { return fmi2OK; }

fmi2Status fmi2Reset(fmi2Component c)
{
    set_starts(&((Instance *)c)->state);
    return fmi2OK;
}

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real value[])
{
    Instance *instance = c;
    size_t i;
    for (i = 0; i < n; i++) {
        int is_result = (vr[i] >= DERIVATIVES_AT && vr[i] < INPUTS_AT) ||
                        (vr[i] >= OUTPUTS_AT && vr[i] < PARAMETERS_AT);
        if (vr[i] >= VALUES)
            return failed(instance, "there is no variable with this value reference");
        if (is_result && update(instance) != fmi2OK)
            return fmi2Error;
        value[i] = instance->state.values[vr[i]];
    }
    return fmi2OK;
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                       const fmi2Real value[])
{
    Instance *instance = c;
    size_t i;
    for (i = 0; i < n; i++) {
        if (vr[i] >= VALUES || (vr[i] >= DERIVATIVES_AT && vr[i] < INPUTS_AT) ||
            (vr[i] >= OUTPUTS_AT && vr[i] < PARAMETERS_AT))
            return failed(instance, "only states, inputs and parameters can be set");
        if (!isfinite(value[i]))
            return failed(instance, "values must be finite");
        if (vr[i] >= PARAMETERS_AT && (value[i] < parameter_low[vr[i] - PARAMETERS_AT] ||
                                       value[i] > parameter_high[vr[i] - PARAMETERS_AT]))
            return failed(instance, parameter_allowed[vr[i] - PARAMETERS_AT]);
        instance->state.values[vr[i]] = value[i];
    }
    instance->state.is_current = 0;
    return fmi2OK;
}

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *kept)
{
    if (!*kept)
        *kept = malloc(sizeof(State));
    if (!*kept)
        return failed(c, "no memory for the state");
    memcpy(*kept, &((Instance *)c)->state, sizeof(State));
    return fmi2OK;
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate kept)
{
    memcpy(&((Instance *)c)->state, kept, sizeof(State));
    return fmi2OK;
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *kept)
{
    free(*kept);
    *kept = NULL;
    return fmi2OK;
}

#define REFUSED(name, arguments, message) \
fmi2Status name arguments { return failed(c, message); }
REFUSED(fmi2SerializedFMUstateSize, (fmi2Component c, fmi2FMUstate kept, size_t *size),
        "states cannot be serialized")
REFUSED(fmi2SerializeFMUstate, (fmi2Component c, fmi2FMUstate kept, fmi2Byte bytes[], size_t n),
        "states cannot be serialized")
REFUSED(fmi2DeSerializeFMUstate,
        (fmi2Component c, const fmi2Byte bytes[], size_t n, fmi2FMUstate *kept),
        "states cannot be serialized")
REFUSED(fmi2GetDirectionalDerivative,
        (fmi2Component c, const fmi2ValueReference unknown[], size_t unknowns,
         const fmi2ValueReference known[], size_t knowns, const fmi2Real seed[], fmi2Real found[]),
        "directional derivatives are not provided")
REFUSED(fmi2CancelStep, (fmi2Component c), "no step is under way")

#define REFUSED_IF_ANY(name, arguments, message) \
fmi2Status name arguments { return n ? failed(c, message) : fmi2OK; }
#define REFUSED_TYPE(type) \
REFUSED_IF_ANY(fmi2Get##type, \
               (fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2##type value[]), \
               "all variables are of type Real") \
REFUSED_IF_ANY(fmi2Set##type, \
               (fmi2Component c, const fmi2ValueReference vr[], size_t n, \
                const fmi2##type value[]), "all variables are of type Real")
REFUSED_TYPE(Integer)
REFUSED_TYPE(Boolean)
REFUSED_TYPE(String)
REFUSED_IF_ANY(fmi2SetRealInputDerivatives,
               (fmi2Component c, const fmi2ValueReference vr[], size_t n,
                const fmi2Integer order[], const fmi2Real value[]),
               "derivatives of inputs are not interpolated")
REFUSED_IF_ANY(fmi2GetRealOutputDerivatives,
               (fmi2Component c, const fmi2ValueReference vr[], size_t n,
                const fmi2Integer order[], fmi2Real value[]),
               "derivatives of outputs are not provided")
REFUSED_IF_ANY(fmi2GetEventIndicators, (fmi2Component c, fmi2Real indicators[], size_t n),
               "there are no event indicators")

/* Model exchange */

fmi2Status fmi2EnterEventMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time) { return fmi2OK; }

fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info)
{
    memset(info, 0, sizeof *info);
    return fmi2OK;
}

fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean no_rollback,
                                       fmi2Boolean *enter_event_mode, fmi2Boolean *terminate)
{
    *enter_event_mode = *terminate = fmi2False;
    return fmi2OK;
}

static fmi2Status copied(fmi2Component c, double *to, const double *from, size_t n)
{
    if (n != STATES)
        return failed(c, "wrong number of states");
    memcpy(to, from, STATES * sizeof(double));
    return fmi2OK;
}

fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t n)
{
    ((Instance *)c)->state.is_current = 0;
    return copied(c, ((Instance *)c)->state.values, x, n);
}

fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t n)
{
    return copied(c, x, ((Instance *)c)->state.values, n);
}

fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real dx[], size_t n)
{
    fmi2Status status = update(c);
    return status == fmi2OK ? copied(c, dx, ((Instance *)c)->state.values + DERIVATIVES_AT, n)
                            : status;
}

fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real nominal[], size_t n)
{
    size_t i;
    for (i = 0; i < n; i++)
        nominal[i] = 1.0;
    return fmi2OK;
}

/* Co-simulation */

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real time, fmi2Real duration,
                      fmi2Boolean no_set_state_before)
{
    Instance *instance = c;
    double *x = instance->state.values;
    double count = ceil(duration / instance->state.values[VALUES - 1] * (1.0 - 1e-12));
    double k[4][STATES], at[STATES], h, done;
    int i, stage;
    if (!(duration >= 0.0 && count < 1e12))
        return failed(instance, "the communication step is negative or too many times longer "
                                "than the integration step");
    h = count > 0.0 ? duration / count : 0.0;
    for (done = 0.0; done < count; done += 1.0) {
        memcpy(at, x, sizeof at);
        for (stage = 0; stage < 4; stage++) {
            if (derivatives_at(instance, at, k[stage]))
                return failed(instance, "the state or its derivative is no longer finite; take a "
                                        "shorter integration step");
            for (i = 0; i < STATES && stage < 3; i++)
                at[i] = x[i] + (stage == 2 ? h : 0.5 * h) * k[stage][i];
        }
        for (i = 0; i < STATES; i++)
            x[i] += h / 6.0 * (k[0][i] + 2.0 * (k[1][i] + k[2][i]) + k[3][i]);
        instance->state.is_current = 0;
    }
    return update(instance);
}

#define NO_STATUS(name, type) \
fmi2Status name(fmi2Component c, const fmi2StatusKind kind, type *value) { return fmi2Discard; }
NO_STATUS(fmi2GetStatus, fmi2Status)
NO_STATUS(fmi2GetRealStatus, fmi2Real)
NO_STATUS(fmi2GetIntegerStatus, fmi2Integer)
NO_STATUS(fmi2GetBooleanStatus, fmi2Boolean)
NO_STATUS(fmi2GetStringStatus, fmi2String)
"""
