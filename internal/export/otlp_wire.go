package export

import (
	"encoding/binary"
	"math"
)

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

// The messages of OTLP are few and small, so they are written by hand: their
// generated form would have to be linked and initialized by every command. What
// is written is read back by the generated form in the tests.

// A wire writes protobuf.
type wire []byte

func (w *wire) tag(field, kind uint64) { *w = binary.AppendUvarint(*w, field<<3|kind) }

func (w *wire) varint(field, v uint64) {
	if v != 0 {
		w.tag(field, 0)
		*w = binary.AppendUvarint(*w, v)
	}
}

func (w *wire) fixed64(field, v uint64) {
	w.tag(field, 1)
	*w = binary.LittleEndian.AppendUint64(*w, v)
}

func (w *wire) bytes(field uint64, p []byte) {
	w.tag(field, 2)
	*w = append(binary.AppendUvarint(*w, uint64(len(p))), p...)
}

func (w *wire) text(field uint64, s string) {
	if s != "" {
		w.tag(field, 2)
		*w = append(binary.AppendUvarint(*w, uint64(len(s))), s...)
	}
}

// message writes what do writes, and its length before it.
func (w *wire) message(field uint64, do func(*wire)) {
	w.tag(field, 2)
	at := len(*w)
	do(w)
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(*w)-at))
	*w = append(*w, size[:n]...)
	copy((*w)[at+n:], (*w)[at:len(*w)-n])
	copy((*w)[at:], size[:n])
}

// appendRequest appends an ExportTraceServiceRequest.
func appendRequest(dst []byte, resource []attr, spans []span) []byte {
	w := wire(dst)
	w.message(1, func(w *wire) { // ResourceSpans
		w.message(1, func(w *wire) { w.attrs(1, resource) })
		w.message(2, func(w *wire) { // ScopeSpans
			w.message(1, func(w *wire) {
				w.text(1, scopeName)
				w.text(2, scopeVersion)
			})
			for i := range spans {
				w.message(2, spans[i].write)
			}
		})
	})
	return w
}

func (s *span) write(w *wire) {
	w.bytes(1, s.trace[:])
	w.bytes(2, s.id[:])
	if s.parent != ([8]byte{}) {
		w.bytes(4, s.parent[:])
	}
	w.text(5, s.name)
	w.varint(6, uint64(s.kind))
	w.fixed64(7, uint64(s.start))
	w.fixed64(8, uint64(s.end))
	w.attrs(9, s.attrs)
	for _, e := range s.events {
		w.message(11, func(w *wire) {
			w.fixed64(1, uint64(e.at))
			w.text(2, e.name)
			w.attrs(3, e.attrs)
		})
	}
	w.varint(12, uint64(s.dropped))
	if s.status != 0 {
		w.message(15, func(w *wire) {
			w.text(2, s.message)
			w.varint(3, uint64(s.status))
		})
	}
}

func (w *wire) attrs(field uint64, list []attr) {
	for _, a := range list {
		w.message(field, func(w *wire) {
			w.text(1, a.key)
			w.message(2, func(w *wire) { w.value(a.value) })
		})
	}
}

// value writes an AnyValue, whose fields are written though they are empty:
// that one is there says what it is.
func (w *wire) value(value any) {
	switch v := value.(type) {
	case string:
		w.bytes(1, []byte(v))
	case bool:
		w.tag(2, 0)
		*w = append(*w, 0)
		if v {
			(*w)[len(*w)-1] = 1
		}
	case int64:
		w.tag(3, 0)
		*w = binary.AppendUvarint(*w, uint64(v))
	case float64:
		w.fixed64(4, math.Float64bits(v))
	case []string:
		w.message(5, func(w *wire) {
			for _, s := range v {
				w.message(1, func(w *wire) { w.value(s) })
			}
		})
	}
}
