package export

import "runloop.dev/rlp/internal/record/otlp"

// scopeName is what made the spans; scopeVersion is the version of their names
// and attributes.
const (
	scopeName    = "runloop.dev/rlp/audit"
	scopeVersion = "1"
)

// Flush appends one ExportTraceServiceRequest with the spans that were
// collected: in protobuf, or as a line of JSON.
func (t *tracer) Flush(dst []byte) []byte {
	if len(t.spans) == 0 {
		return dst
	}
	if t.opt.Binary {
		dst = appendRequest(dst, t.resource(), t.spans)
	} else {
		dst = append(appendRequestJSON(dst, t.resource(), t.spans), '\n')
	}
	clear(t.spans)
	t.spans = t.spans[:0]
	return dst
}

func (t *tracer) resource() []attr {
	return attrs("service.name", "rlp", "service.version", t.opt.Version, "service.namespace", t.opt.Tenant)
}

func appendRequest(dst []byte, resource []attr, spans []span) []byte {
	w := otlp.Wire(dst)
	w.Message(1, func(w *otlp.Wire) { // ResourceSpans
		w.Message(1, func(w *otlp.Wire) { writeAttrs(w, 1, resource) })
		w.Message(2, func(w *otlp.Wire) { // ScopeSpans
			w.Message(1, func(w *otlp.Wire) {
				w.Text(1, scopeName)
				w.Text(2, scopeVersion)
			})
			for i := range spans {
				w.Message(2, spans[i].write)
			}
		})
	})
	return w
}

func (s *span) write(w *otlp.Wire) {
	w.Bytes(1, s.trace[:])
	w.Bytes(2, s.id[:])
	if s.parent != ([8]byte{}) {
		w.Bytes(4, s.parent[:])
	}
	w.Text(5, s.name)
	w.Varint(6, uint64(s.kind))
	w.Fixed64(7, uint64(s.start))
	w.Fixed64(8, uint64(s.end))
	writeAttrs(w, 9, s.attrs)
	for _, e := range s.events {
		w.Message(11, func(w *otlp.Wire) {
			w.Fixed64(1, uint64(e.at))
			w.Text(2, e.name)
			writeAttrs(w, 3, e.attrs)
		})
	}
	w.Varint(12, uint64(s.dropped))
	if s.status != 0 {
		w.Message(15, func(w *otlp.Wire) {
			w.Text(2, s.message)
			w.Varint(3, uint64(s.status))
		})
	}
}

func writeAttrs(w *otlp.Wire, field uint64, list []attr) {
	for _, a := range list {
		w.Message(field, func(w *otlp.Wire) {
			w.Text(1, a.key)
			w.Message(2, func(w *otlp.Wire) { writeValue(w, a.value) })
		})
	}
}

// writeValue writes an AnyValue, whose fields are written though they are empty:
// that one is there says what it is.
func writeValue(w *otlp.Wire, value any) {
	switch v := value.(type) {
	case string:
		w.String(1, v)
	case bool:
		w.Bool(2, v)
	case int64:
		w.Oneof(3, uint64(v))
	case float64:
		w.Double(4, v)
	case []string:
		w.Message(5, func(w *otlp.Wire) {
			for _, s := range v {
				w.Message(1, func(w *otlp.Wire) { w.String(1, s) })
			}
		})
	}
}
