package pii

import (
	"bytes"
	"strings"
	"testing"
)

const contact = `{"name":"Alice Jones","email":"alice.jones@example.org","phone":"+49 30 1234567","address":{"street":"12 High Street","zip":"12345","city":"Springfield"},"notes":["people/contacts.md","projects/harbour-lights.md"],"met":"2024-05-06","note":"`

// The cost of masking, for values as they are: a contact of 1 KiB, 1 KiB and
// 64 KiB of text with and without data in it.
func BenchmarkMask(b *testing.B) {
	const words = "The harbour lights were lit again in the evening, and nobody had asked who paid for them (2024: " +
		"12,500 in all). "
	prose := func(n int, with string) []byte {
		return []byte(strings.Repeat(words, n/len(words)) + with)
	}
	m := New(testKey)
	for _, c := range []struct {
		name, domain string
		value        []byte
	}{
		{"contact 1 KiB", "contacts", []byte(contact + strings.Repeat(words, 7) + `"}`)},
		{"contact 256 B", "contacts", []byte(contact + `"}`)},
		{"json 1 KiB clean", "artifacts", []byte(`{"id":17,"kind":"report","lines":["` + strings.Repeat(words, 8) +
			`"],"ok":true}`)},
		{"text 1 KiB clean", "notes", prose(1<<10, "")},
		{"text 1 KiB x", "notes", bytes.Repeat([]byte("x"), 1<<10)},
		{"text 64 KiB clean", "notes", prose(64<<10, "")},
		{"text 64 KiB one address", "notes", prose(64<<10, "alice@example.org")},
		{"binary 64 KiB", "notes", bytes.Repeat([]byte("\x80\x01\xff\x7f\x03abc\xc0\x10"), 6554)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.value)))
			for b.Loop() {
				m.Mask(c.domain, c.value)
			}
		})
	}
}
