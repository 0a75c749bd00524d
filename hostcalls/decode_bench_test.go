package hostcalls

import (
	"strings"
	"testing"
)

// BenchmarkDecode reads the arguments of calls, as it happens before each is judged.
func BenchmarkDecode(b *testing.B) {
	const url = `{"method":"POST","url":"https://api.example.com/v1/things?x=1","headers":{"Content-Type":"application/json",` +
		`"Accept":["a/b","c/d"],"X-Request-Id":"0123456789abcdef"},"timeout_ms":15000}`
	for name, decode := range map[string]func() error{
		"http": func() error { _, err := decodeHTTP([]string{url, ""}); return err },
		"exec": func() error {
			_, err := decodeExec([]string{`{"argv":["/usr/bin/git","-C","sub","log","--oneline"],"env":{"A":"1","LANG":"C"},"timeout_ms":1000}`, ""})
			return err
		},
		"search": func() error {
			_, err := decodeSearch([]string{"notes", `{"text":"how long is a \"run\"","k":5}`})
			return err
		},
		"launch": func() error {
			_, err := decodeLaunch([]string{`{"agent":"critic","input":{"texts":["a","b"],"n":[1,2,3]},"deny":["kb:write:*"]}`})
			return err
		},
		"mcp": func() error {
			_, err := decodeMCP([]string{`{"server":"github","tool":"issue","arguments":{"repo":"a/b","n":7}}`})
			return err
		},
		"text": func() error {
			_, err := decodeSearch([]string{"notes", `{"text":"` + strings.Repeat("word ", 800) + `"}`})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
