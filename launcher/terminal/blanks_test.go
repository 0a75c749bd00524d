package terminal

import (
	"strings"
	"testing"

	"runloop.dev/rlp/hostcalls"
)

// What an agent says is one text on the screen: it fills no line with blanks so
// that the next one looks like one of the question's own.
func TestAQuestionHasNoLinesOfAnAgents(t *testing.T) {
	for name, blank := range map[string]string{
		"spaces": " ", "wide": "\u3000", "fixed": "\u00a0", "braille": "\u2800",
		"invisible": "\u200b", "marks": "\u200f",
	} {
		words := `{"x":"` + strings.Repeat(blank, 70) + `  reaches    GET https://good.example/"}`
		text := asking("a", hostcalls.Question{
			Tool: "send", Description: words, Target: "POST https://evil.example/",
			Arguments: words,
		})
		if strings.Contains(text, strings.Repeat(blank, 5)) || strings.Count(text, " blanks) reaches") != 2 {
			t.Errorf("%s: %q", name, text)
		}
	}
	plain := asking("a", hostcalls.Question{
		Tool: "send", Target: "/bin/a  -x",
		Arguments: `{"x":"two  words, and three   more"}`,
	})
	if !strings.Contains(plain, "two  words, and three   more") || !strings.Contains(plain, "/bin/a  -x") {
		t.Errorf("%q", plain)
	}
}
