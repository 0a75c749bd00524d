package schema

import "testing"

// BenchmarkCheck reads, checks and writes the arguments of a usual call.
func BenchmarkCheck(b *testing.B) {
	s := compile(b, `{"type": "object", "properties": {"to": {"type": "array", "items": {"type": "string", "maxLength": 200}}, "subject": {"type": "string"},
		"body": {"type": "string"}, "priority": {"enum": ["low", "high"]}}, "required": ["to", "subject"], "additionalProperties": false}`, nil)
	text := []byte(`{"to": ["a@example.com", "b@example.com"], "subject": "Hello", "body": "Some words and some more of them.", "priority": "low"}`)
	b.ReportAllocs()
	for b.Loop() {
		v, err := Decode(text)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Check(v); err != nil {
			b.Fatal(err)
		}
		if _, err := Encode(v); err != nil {
			b.Fatal(err)
		}
	}
}
