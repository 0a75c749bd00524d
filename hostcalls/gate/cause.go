package gate

import (
	"strings"
	"unicode/utf8"

	"runloop.dev/rlp/internal/base/printable"
)

// MaxCause bounds the name of an input that marked a run, in bytes.
const MaxCause = 1024

// Cause is how records and labels name an input: "http:https://host/path",
// "kb:drafts/x", "fs:/downloads/a.txt", or the word alone where a source has no
// name. It is one line of UTF-8.
func Cause(word, name string) string {
	if name == "" {
		return word
	}
	text := word + ":" + strings.Map(func(r rune) rune {
		if printable.Hidden(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(name, "\ufffd"))
	if len(text) <= MaxCause {
		return text
	}
	cut := MaxCause - len("...")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}
