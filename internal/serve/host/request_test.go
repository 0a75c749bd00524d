package host

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/internal/serve/service"
)

// A name in a request that nothing has is denied, and said: whoever forbids "Exec"
// meant exec, and would take it for forbidden.
//
//rlp:holds A37
func TestNamesThatNothingHasAreTold(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	sent := archived(t, "sent", "time = true\nkb_read = true\n", importing(t))
	for _, c := range []struct {
		q    service.Request
		told []string // the beginning of each warning
	}{
		{service.Request{Grant: json.RawMessage(`{"forbidden_adapters":["exec"]}`)}, nil}, // control
		{
			service.Request{Grant: json.RawMessage(`{"forbidden_adapters":["exec","Exec"]}`)},
			[]string{"forbidden_adapters[1]: "},
		},
		{
			service.Request{Grant: json.RawMessage(`{"allowed_adapters":["time","memory","tme"]}`)},
			[]string{"allowed_adapters[2]: "},
		},
		{service.Request{Override: "[deny]\ntools = [\"Exec\"]\n"}, []string{
			"policy: line 2, column 10: ",
			"override:request: there is no tool ",
		}},
	} {
		c.q.Bundle = sent
		report, err := h.do(t, &c.q)
		if err != nil {
			t.Fatal(err)
		}
		told := slices.DeleteFunc(slices.Clone(report.Warnings), func(w string) bool {
			return strings.Contains(w, "is not in the base")
		})
		if len(told) != len(c.told) {
			t.Errorf("%s%s: %q", c.q.Grant, c.q.Override, told)
			continue
		}
		for i, begins := range c.told {
			if !strings.HasPrefix(told[i], begins) {
				t.Errorf("%q, want %s", told[i], begins)
			}
		}
	}
}

// What a request gives the agent to read follows from what its manifest takes, and
// what it does not take is refused by the field.
//
//rlp:holds D7
func TestInputByWhatTheAgentTakes(t *testing.T) {
	for _, c := range []struct {
		kind        string
		q           service.Request
		want, field string
	}{
		{"json", service.Request{Input: json.RawMessage(`"hi"`)}, `"hi"`, ""},
		{"json", service.Request{InputBytes: []byte(`"hi"`)}, `"hi"`, ""},
		{"json", service.Request{InputBytes: []byte(`hi`)}, "", "input_base64"},
		{"text", service.Request{Input: json.RawMessage(`"hi"`)}, "hi", ""},
		{"text", service.Request{InputBytes: []byte(`"hi"`)}, `"hi"`, ""},
		{"text", service.Request{Input: json.RawMessage(`["hi"]`)}, "", "input"},
		{"text", service.Request{InputBytes: []byte("\xff")}, "", "input_base64"},
		{"bytes", service.Request{Input: json.RawMessage(`"AP8="`)}, "\x00\xff", ""},
		{"bytes", service.Request{InputBytes: []byte("\x00\xff")}, "\x00\xff", ""},
		{"bytes", service.Request{Input: json.RawMessage(`"hi!"`)}, "", "input"},
		{"bytes", service.Request{}, "", ""},
	} {
		got, err := stdinOf(&bundles.Manifest{Input: c.kind}, &c.q)
		var fields service.FieldErrors
		errors.As(err, &fields)
		if string(got) != c.want || (err == nil) != (c.field == "") || err != nil && fields[0].Field != c.field {
			t.Errorf("%s %s %q: %q, %v", c.kind, c.q.Input, c.q.InputBytes, got, err)
		}
	}
}

// The field of an input that breaks its schema is the path in it.
func TestAnInputThatBreaksItsSchemaIsRefusedByPath(t *testing.T) {
	m := &bundles.Manifest{Input: bundles.InputJSON, Schemas: map[string]json.RawMessage{
		"with": json.RawMessage(`{"properties":{"to":{"items":{"type":"string"}}},"type":["object","array"],"items":false}`),
	}}
	for input, field := range map[string]string{
		`{"to":["a"]}`: "", `{"to":["a",1]}`: "input.to[1]", `[1]`: "input[0]", `7`: "input",
	} {
		_, err := stdinOf(m, &service.Request{Input: json.RawMessage(input)})
		var fields service.FieldErrors
		if errors.As(err, &fields); (err == nil) != (field == "") || err != nil && fields[0].Field != field {
			t.Errorf("%s: %v", input, err)
		}
	}
}

// What no limit can be is refused by the path of the limit, also where it is no
// number that can be read.
//
//rlp:holds A9 A54
func TestLimitsThatAreNoneAreRefusedByPath(t *testing.T) {
	h := testingHost(t, "")
	q := func(limit string) *service.Request {
		return &service.Request{
			Bundle: archived(t, "sent", "", importing(t)),
			Grant:  json.RawMessage(`{"limits":{"max_steps":` + limit + `}}`),
		}
	}
	if err := h.Check(t.Context(), h.who, q("1")); err != nil {
		t.Fatal("control:", err)
	}
	for _, limit := range []string{
		"null", "-1", "1.5", "1e3", "1e999", `"1"`, "true", "[1]", "9223372036854775808",
		"1000000000000000000000000000000",
	} {
		var wrong service.FieldErrors
		if err := h.Check(t.Context(), h.who, q(limit)); !errors.As(err, &wrong) || len(wrong) != 1 ||
			wrong[0].Field != "limits.max_steps" || strings.Contains(wrong[0].Why, "limits.max_steps: ") {
			t.Errorf("%s: %v", limit, err)
		}
	}
}
