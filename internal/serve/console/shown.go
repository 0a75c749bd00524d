package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"unicode/utf8"

	"runloop.dev/rlp/internal/base/printable"
)

// shown is text that somebody else wrote, as a page shows it on one line: what
// steers a terminal, turns the direction of writing or is not seen at all is
// made visible, and no more than room bytes of HTML are made of it.
func shown(s string, room int) string { return visible(s, room, false) }

// shownBlock is shown for text of several lines.
func shownBlock(s string, room int) string { return visible(s, room, true) }

func visible(s string, room int, lines bool) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		text := string(r)
		switch {
		case r == utf8.RuneError && size == 1:
			text = fmt.Sprintf("⟨%02X⟩", s[i])
		case lines && (r == '\n' || r == '\t'):
		case r < ' ':
			text = string(rune(0x2400 + r)) // the picture of a control character
		case r == 0x7f:
			text = "␡"
		case printable.Hidden(r):
			text = fmt.Sprintf("⟨U+%04X⟩", r)
		}
		room -= weight(text)
		if room < 0 {
			fmt.Fprintf(&b, "… (%s more)", bytesText(int64(len(s)-i)))
			break
		}
		b.WriteString(text)
		i += size
	}
	return b.String()
}

// weight is how many bytes a text takes as HTML at most.
func weight(s string) int {
	n := 0
	for i := range len(s) {
		switch s[i] {
		case '<', '>':
			n += 4
		case '&', '"', '\'', '+':
			n += 5
		case 0:
			n += 3
		default:
			n++
		}
	}
	return n
}

func bytesText(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// Room for what somebody else wrote, in bytes of HTML.
const (
	wordRoom  = 96
	cellRoom  = 320
	lineRoom  = 1200
	printRoom = 14 << 10 // stdout
	smallRoom = 6 << 10  // stderr, results
)

// words are the functions of the templates.
func words() template.FuncMap {
	return template.FuncMap{
		"word":    func(s any) string { return shown(fmt.Sprint(s), wordRoom) },
		"cell":    func(s any) string { return shown(fmt.Sprint(s), cellRoom) },
		"line":    func(s any) string { return shown(fmt.Sprint(s), lineRoom) },
		"text":    func(s string) string { return shownBlock(s, smallRoom) },
		"printed": func(s string) string { return shownBlock(s, printRoom) },
		"bytes":   bytesText,
		"number":  number,
		"short":   shortID,
		"plural":  plural,
		"reason":  reasonText,
	}
}

func plural(n any, one, many string) string {
	if fmt.Sprint(n) == "1" {
		return one
	}
	return many
}

// number groups the digits of n.
func number(v any) string {
	s := fmt.Sprint(v)
	if strings.Trim(s, "0123456789") != "" || len(s) < 5 {
		return s
	}
	var b strings.Builder
	for i, d := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// shortID is the end of a run id, which is what tells two apart.
func shortID(id string) string {
	if len(id) < 9 {
		return id
	}
	return "…" + id[len(id)-8:]
}

// reasonText says a reason of the log in words.
func reasonText(code string) string {
	words := map[string]string{
		"granted":               "granted",
		"cap_missing":           "the agent holds nothing of this",
		"path_not_permitted":    "no grant that is left holds this path",
		"host_not_permitted":    "no grant that is left holds this host",
		"http_not_permitted":    "plain HTTP was not granted",
		"method_not_permitted":  "the method was not granted",
		"address_not_permitted": "the host leads to an address that nobody may reach",
		"domain_not_permitted":  "no grant that is left holds this domain",
		"secret_not_permitted":  "no grant that is left holds this secret",
		"program_not_permitted": "no grant that is left holds this program",
		"model_not_permitted":   "no grant that is left holds this model",
		"server_not_permitted":  "no grant that is left holds this server",
		"agent_not_permitted":   "no grant that is left holds this agent",
		"not_in_base":           "its bundle never asked for it",
		"not_confirmed":         "nobody said yes",
		"lease_expired":         "the lease is over",
		"server_changed":        "the server is not the one that was accepted",
		"route_not_permitted":   "no route of the policy takes the request",
		"unavailable":           "what it needs is not there",
		"audit_unavailable":     "it could not be recorded",
		"rate_limited":          "too often in too short a time",
		"budget_exhausted":      "a limit of the run was reached",
		"untrusted_context":     "the run has seen content from outside",
		"delegate_floor":        "runs that others launch never may",
		"caps_empty":            "nothing is left to the agent",
		"tool_hidden":           "this call was taken away",
	}
	if w := words[code]; w != "" {
		return w
	}
	return shown(strings.ReplaceAll(code, "_", " "), wordRoom)
}

// few names a few words of a list.
func few(words []string) string {
	const most = 3
	if n := len(words) - most; n > 0 {
		return strings.Join(words[:most], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(words, ", ")
}

func clip[T any](list []T, most int) ([]T, int) {
	if len(list) <= most {
		return list, 0
	}
	return list[:most], len(list) - most
}

func indented(doc json.RawMessage) json.RawMessage {
	if len(doc) == 0 || string(doc) == "null" {
		return nil
	}
	var b bytes.Buffer
	if json.Indent(&b, doc, "", "  ") != nil {
		return doc
	}
	return b.Bytes()
}
