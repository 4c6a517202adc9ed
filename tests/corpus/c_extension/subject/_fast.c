#include <Python.h>

static PyObject *add(PyObject *self, PyObject *args) {
    long one, other;
    if (!PyArg_ParseTuple(args, "ll", &one, &other))
        return NULL;
    return PyLong_FromLong(one + other);
}

static PyObject *apply(PyObject *self, PyObject *args) {
    PyObject *function, *value;
    if (!PyArg_ParseTuple(args, "OO", &function, &value))
        return NULL;
    return PyObject_CallFunctionObjArgs(function, value, NULL);
}

static PyMethodDef methods[] = {{"add", add, METH_VARARGS, ""}, {"apply", apply, METH_VARARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", "", -1, methods};

PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
