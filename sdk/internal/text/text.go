// Package text puts texts and errors together without package fmt, which would be a tenth of a
// small WASM module.
package text

// Of joins parts as they are, without anything between.
func Of(parts ...any) string {
	var b []byte
	for _, p := range parts {
		b = append(b, Value(p)...)
	}
	return string(b)
}

// Quoted returns a list of names in quotation marks.
func Quoted(names []string) string {
	b := []byte{'['}
	for i, name := range names {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(append(append(b, '"'), name...), '"')
	}
	return string(append(b, ']'))
}

// Error returns an error with the text of parts; it wraps those parts that are errors.
func Error(parts ...any) error {
	e := &failure{text: Of(parts...)}
	for _, p := range parts {
		if err, ok := p.(error); ok {
			e.causes = append(e.causes, err)
		}
	}
	return e
}

type failure struct {
	text   string
	causes []error
}

func (e *failure) Error() string { return e.text }

func (e *failure) Unwrap() []error { return e.causes }
