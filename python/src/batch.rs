// SPDX-License-Identifier: GPL-2.0-or-later
//! A table that data frames take through Arrow's C stream, without a copy.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

/// A table.
#[pyclass(frozen, module = "schedtwin._native")]
pub struct Batch(pub RecordBatch);

#[pymethods]
impl Batch {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The table as a stream of Arrow's C interface: the buffers are shared, not copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer ignore which schema a consumer would like best.
        drop(requested_schema);
        let batches = RecordBatchIterator::new(vec![Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The schema of the stream.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// A column as a list of Python values, from row `start` to before `stop`.
    #[pyo3(signature = (name, start=0, stop=None))]
    fn column<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        start: usize,
        stop: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let column = self.0.column_by_name(name);
        let column = column.ok_or_else(|| PyKeyError::new_err(name.to_string()))?;
        let stop = stop.unwrap_or(usize::MAX).min(column.len());
        let start = start.min(stop);
        list(py, &column.slice(start, stop - start))
    }

    /// The columns by name, each a list.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (field, column) in self.0.schema().fields().iter().zip(self.0.columns()) {
            dict.set_item(field.name(), list(py, column)?)?;
        }
        Ok(dict)
    }
}

fn list<'py>(py: Python<'py>, column: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    match column.data_type() {
        DataType::Float64 => PyList::new(py, column.as_primitive::<Float64Type>().iter()),
        DataType::UInt64 => PyList::new(py, column.as_primitive::<UInt64Type>().iter()),
        DataType::UInt32 => PyList::new(py, column.as_primitive::<UInt32Type>().iter()),
        DataType::Int64 => PyList::new(py, column.as_primitive::<Int64Type>().iter()),
        DataType::Boolean => PyList::new(py, column.as_boolean().iter()),
        DataType::Dictionary(..) => {
            let column = column.as_dictionary::<Int32Type>();
            let words = column.values().as_string::<i32>();
            let words: Vec<_> =
                words.iter().map(|word| word.map(|w| pyo3::types::PyString::new(py, w))).collect();
            let word = |key: Option<i32>| key.and_then(|key| words[key as usize].clone());
            PyList::new(py, column.keys().iter().map(word))
        }
        other => Err(PyValueError::new_err(format!("no list of {other}"))),
    }
}
