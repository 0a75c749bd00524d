package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"runloop.dev/rlp/caps/policy"
)

func BenchmarkParseBase(b *testing.B) {
	var many strings.Builder
	many.WriteString("[capabilities]\nfs = [\n")
	for i := range 1000 {
		fmt.Fprintf(&many, "  \"/home/user/work/%d/notes\",\n", i)
	}
	many.WriteString("]\n")
	for name, text := range map[string]string{"every key": full, "1000 paths": many.String()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if base, f := policy.ParseBase("f", []byte(text), options); base == nil {
					b.Fatal(f)
				}
			}
		})
	}
}

func BenchmarkParseLayer(b *testing.B) {
	text := []byte("[capabilities]\nnet = []\nkb_write = [\"drafts\"]\n")
	b.ReportAllocs()
	for b.Loop() {
		if o, f := policy.ParseLayer("l", "f", text, options); o == nil {
			b.Fatal(f)
		}
	}
}
