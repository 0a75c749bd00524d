package modelapi

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/model/modeltest"
)

// BenchmarkRequest is a request to a model by a program, and the same to its provider.
func BenchmarkRequest(b *testing.B) {
	r := open(b, grant)
	const body = `{"model":"%","messages":[{"role":"user","content":"two words"}],"stream":true}`
	for name, x := range map[string]struct{ url, model string }{
		"direct": {r.behind["openai"].URL + "/chat/completions", "some"},
		"rlp":    {r.front.URL + "/v1/chat/completions", "openai:some"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				q, err := http.NewRequest("POST", x.url, strings.NewReader(strings.Replace(body, "%", x.model, 1)))
				if err != nil {
					b.Fatal(err)
				}
				q.Header.Set("Content-Type", "application/json")
				q.Header.Set("Authorization", "Bearer "+modeltest.Key)
				resp, err := http.DefaultClient.Do(q)
				if err != nil {
					b.Fatal(err)
				}
				if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), "[DONE]") {
					b.Fatalf("%s %v", text, err)
				}
				resp.Body.Close()
			}
		})
	}
}
