package hostmcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/strictjson"
)

// A tool is an import as a client of MCP sees it.
type tool struct {
	name, does string
	params     []param // the arguments of the import, in its order
	// whole is what makes the one JSON argument of the import of the client's whole
	// object, beside the params; nil: there is none.
	whole   map[string]any
	encoded bool // a value may be no text
}

// A param is one argument.
type param struct {
	name, does string
	any        bool // JSON of any kind, as it is written; else a text
}

const base64Word = "base64"

const launchName = "agent_launch"

func tools() []tool {
	domain := param{name: "domain", does: "the domain of the knowledge base"}
	key := param{name: "key", does: "1 to 1024 bytes"}
	value := param{name: "value", does: "at most 1 MiB"}
	return []tool{
		{name: "kb_get", does: "The value at a key.", params: []param{domain, key}, encoded: true},
		{name: "kb_put", does: "Stores a value; the answer is its revision.", params: []param{domain, key, value}, encoded: true},
		{
			name: "kb_cas", does: "Stores a value if the stored revision is this one; the answer is the new one.",
			params:  []param{domain, key, value, {name: "revision", does: "in decimals; \"0\" for a key that is not there"}},
			encoded: true,
		},
		{name: "kb_delete", does: "Removes a key.", params: []param{domain, key}},
		{
			name: "kb_list", does: "Keys with their revisions and sizes, as JSON.",
			params: []param{domain, {name: "prefix", does: "of the keys; \"\" for all"}},
		},
		{
			name: "kb_search", does: "The values that suit a text best, as JSON.", params: []param{domain},
			whole: map[string]any{"text": typed("string"), "k": typed("integer")},
		},
		{
			name: launchName, does: "Runs an installed agent to its end with at most what this run holds; the answer is its report.",
			whole: map[string]any{
				"agent": typed("string"), "input": map[string]any{}, "allow": texts(), "deny": texts(), "limits": typed("object"),
			},
		},
		{name: "time_now", does: "The time in nanoseconds since 1970, in decimals."},
		{
			name: "log", does: "Writes a line to the log of this run.",
			params: []param{
				{name: "level", does: "debug, info, warn or error"}, {name: "message", does: "at most 8 KiB"},
			},
		},
		{
			name: "result", does: "Sets the result of this run; the last one counts.",
			params: []param{{name: "value", does: "any JSON, at most 1 MiB", any: true}},
		},
	}
}

func typed(kind string) map[string]any { return map[string]any{"type": kind} }

func texts() map[string]any { return map[string]any{"type": "array", "items": typed("string")} }

// schema is what a client is told of the arguments. The import says what is wrong
// with them.
func (t *tool) schema() map[string]any {
	fields := map[string]any{}
	for _, p := range t.params {
		one := map[string]any{"description": p.does}
		if !p.any {
			one["type"] = "string"
		}
		fields[p.name] = one
	}
	for name, s := range t.whole {
		fields[name] = s
	}
	if t.encoded {
		fields["encoding"] = map[string]any{
			"enum":        []string{"utf-8", base64Word},
			"description": "of the value; a value that is no text comes as base64 in any case",
		}
	}
	return map[string]any{"type": "object", "properties": fields, "additionalProperties": false}
}

// read makes the arguments of the import of what a client wrote. What is missing is
// "", of which the import says what it thinks.
func (t *tool) read(text string) (args []string, encoding string, err error) {
	args = make([]string, len(t.params))
	rest := []byte("{")
	if text == "" {
		text = "{}"
	}
	err = strictjson.Object(text, func(d *strictjson.Reader, key string) (err error) {
		if i := slices.IndexFunc(t.params, func(p param) bool { return p.name == key }); i >= 0 {
			args[i], err = t.params[i].read(d)
			return err
		}
		if t.encoded && key == "encoding" {
			encoding, err = d.Text()
			if err == nil && encoding != "utf-8" && encoding != base64Word {
				err = errors.New("utf-8 or base64 is wanted")
			}
			return err
		}
		if t.whole == nil {
			return errors.New("no argument of " + t.name)
		}
		raw, err := d.Raw()
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(strictjson.AppendText(rest, key), ':'), raw...)
		return err
	})
	if t.whole != nil {
		args = append(args, string(append(rest, '}')))
	}
	if err == nil && encoding == base64Word {
		err = t.decode(args)
	}
	return args, encoding, err
}

func (p param) read(d *strictjson.Reader) (string, error) {
	if p.any {
		raw, err := d.Raw()
		return strings.Clone(raw), err
	}
	text, err := d.Text()
	return strings.Clone(text), err
}

// decode makes of the value in args what it is the base64 of.
func (t *tool) decode(args []string) error {
	i := slices.IndexFunc(t.params, func(p param) bool { return p.name == "value" })
	if i < 0 {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(args[i])
	if err != nil {
		return fmt.Errorf("value: no base64: %w", err)
	}
	args[i] = string(raw)
	return nil
}

// encoded is resp in base64 where a client wants that, or where it is no text.
func encoded(resp []byte, encoding string) (string, bool) {
	if encoding != base64Word && utf8.Valid(resp) {
		return "", false
	}
	return base64.StdEncoding.EncodeToString(resp), true
}

// told is a refusal as a guest reads it.
func told(no *hostcalls.Answer) string {
	text, err := json.Marshal(no)
	if err != nil {
		return no.Error()
	}
	return string(text)
}
