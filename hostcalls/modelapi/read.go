package modelapi

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/strictjson"
)

// An object is JSON that is written.
type object = map[string]any

func id() string { return strings.ToLower(rand.Text()) }

// A rule reads the value of a field.
type rule func(raw json.RawMessage) error

// hint is the rule of a field that may be left out: see the package's comment.
func hint(json.RawMessage) error { return nil }

// fields reads an object: each of its fields by a rule, one without a rule not at all.
// null is a field that is not there.
func fields(path string, text []byte, rules map[string]rule) error {
	members, err := strictjson.Members(text)
	if err != nil {
		if path == "" {
			return fmt.Errorf("the request is no JSON object that every reader takes: %w", err)
		}
		return fmt.Errorf("%s must be an object", path)
	}
	for _, m := range members {
		if string(m.Raw) == "null" {
			continue
		}
		read, known := rules[m.Key]
		if !known {
			return fmt.Errorf("%s is not a field that is known here", below(path, m.Key))
		}
		if err := read(json.RawMessage(m.Raw)); err != nil {
			return err
		}
	}
	return nil
}

func below(path, key string) string {
	if len(key) > 64 {
		key = key[:64] + "..."
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// items reads an array, whose elements are read by one.
func items(path string, raw []byte, one func(path string, raw json.RawMessage) error) error {
	list, err := strictjson.Elements(raw)
	if err != nil {
		return fmt.Errorf("%s must be an array", path)
	}
	for i, item := range list {
		if err := one(fmt.Sprintf("%s[%d]", path, i), item); err != nil {
			return err
		}
	}
	return nil
}

// into passes a field on as it is, under a name.
func into(o object, name string) rule {
	return func(raw json.RawMessage) error {
		o[name] = raw
		return nil
	}
}

// only takes a field that says nothing else than one of these.
func only(path string, words ...string) rule {
	return func(raw json.RawMessage) error {
		if !slices.Contains(words, string(raw)) {
			return fmt.Errorf("%s is %s here and nothing else", path, strings.Join(words, " or "))
		}
		return nil
	}
}

// empty takes a field that says nothing.
func empty(path string) rule { return only(path, `[]`, `{}`, `""`, `false`, `0`) }

// value reads a field into v.
func value[V any](path string, v *V, what string) rule {
	return func(raw json.RawMessage) error {
		if strictjson.Unmarshal(raw, v) != nil {
			return fmt.Errorf("%s must be %s", path, what)
		}
		return nil
	}
}

func text(path string, s *string) rule { return value(path, s, "a string") }
func flag(path string, b *bool) rule   { return value(path, b, "true or false") }

// not reads a flag that says the opposite of b.
func not(path string, b *bool) rule {
	return func(raw json.RawMessage) error {
		var yes bool
		if err := flag(path, &yes)(raw); err != nil {
			return err
		}
		*b = !yes
		return nil
	}
}

// texts is what a text, or an array of parts that are texts, says; kinds are the types
// of parts that are.
func texts(path string, s *string, kinds ...string) rule {
	return func(raw json.RawMessage) error {
		if raw[0] != '[' {
			return text(path, s)(raw)
		}
		var b strings.Builder
		err := items(path, raw, func(path string, raw json.RawMessage) error {
			var kind, part string
			err := fields(path, raw, map[string]rule{
				"type": text(below(path, "type"), &kind), "text": text(below(path, "text"), &part),
				"refusal": text(below(path, "refusal"), &part), "annotations": hint, "logprobs": hint, "cache_control": hint,
				"citations": hint, "prompt_cache_breakpoint": hint,
				"image_url": hint, "source": hint, "file_id": hint, "file_data": hint, "detail": hint, "filename": hint,
			})
			if err == nil && !slices.Contains(kinds, kind) {
				err = fmt.Errorf("%s: %q is not passed on to models here; %s is", below(path, "type"), kind,
					strings.Join(kinds, ", "))
			}
			b.WriteString(part)
			return err
		})
		*s = b.String()
		return err
	}
}
