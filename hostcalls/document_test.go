package hostcalls

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/strictjson/jsontest"
	"runloop.dev/rlp/internal/effect/model"
)

// A result that some reader of reports does not take is refused with the reason,
// and the one before it stays. Control: each is JSON.
func TestResultsAreReadableByAll(t *testing.T) {
	r := newRig(t)
	nested := func(n int) string { return strings.Repeat(`[{"a":`, n/2) + "1" + strings.Repeat("}]", n/2) }
	good := []string{
		`{"a":[1,-2.5e-3,1e308,true,null,"\ud83d\ude00"]}`, nested(64),
		`{"a":{"a":[{"a":1},{"a":"a","b":"a"}]},"b":1}`, `[` + strings.Repeat("9", 128) + `]`, `"` + strings.Repeat("9",
			5000) + `[[[\"\\"`, `1e-999`, strings.Repeat(" ", 100) + "0",
	}
	for _, text := range good {
		if n, _ := r.call("result", text); n != 0 || string(r.host.Result()) != text {
			t.Errorf("%.60s: %d", text, n)
		}
	}
	last := good[len(good)-1]
	for text, says := range map[string]string{
		nested(66):   "64 levels",
		nested(9000): "64 levels",
		strings.Repeat("[", 9000) + strings.Repeat("]", 9000): "64 levels",
		strings.Repeat("9", 5000):                             "characters",
		`{"n":-` + strings.Repeat("1", 5000) + `}`:            "characters",
		`0.` + strings.Repeat("0", 200) + `1`:                 "characters",
		`[1e999]`:                                             "floating point",
		`{"a":{"b":-1E+400}}`:                                 "floating point",
		`"\ud800"`:                                            "half of a character",
		`{"\udc00x":1}`:                                       "half of a character",
		`{"a":1,"a":2}`:                                       "a: given twice",
		`[{"b":{"a":1,"c":[],"\u0061":2}}]`:                   "a: given twice",
		`{"a" : {"x":1} , "b":[{"x":1}], "a"` + "\n:3}":       "a: given twice",
	} {
		if !json.Valid([]byte(text)) {
			t.Fatalf("control: %.60s is no JSON", text)
		}
		if n, why := r.call("result", text); n != -28 || string(r.host.Result()) != last || !strings.Contains(why, says) {
			t.Errorf("%.60s: %d %s, the result is %.60s", text, n, why, r.host.Result())
		}
	}
}

// What an agent gives to one that it launches is read by all as well.
func TestInputsOfDelegatesAreReadableByAll(t *testing.T) {
	for _, input := range []string{
		strings.Repeat("[", 65) + strings.Repeat("]", 65), "1e999", strings.Repeat("1", 200),
		`{"a":1,"a":2}`,
	} {
		r := newRig(t)
		if n, _ := r.call("agent_launch", fmt.Sprintf(`{"agent":"critic","input":%s}`, input)); n != -28 {
			t.Errorf("%.40s: %d", input, n)
		}
	}
}

// No JSON of a guest's has a key twice, whatever it is for. Control: with one of the
// two it gets further.
func TestNoRequestHasAKeyTwice(t *testing.T) {
	for name, c := range map[string]struct{ call, twice, once string }{
		"of a request": {"mcp_call", `{"server":"a","server":"b"}`, `{"server":"b"}`},
		"of arguments": {
			"mcp_call", `{"server":"a","tool":"t","arguments":{"x":1,"x":2}}`,
			`{"server":"a","tool":"t","arguments":{"x":2}}`,
		},
		"of a schema": {
			"model_complete",
			`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"t","parameters":{"type":"object","type":"string"}}}]}`, `{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"t","parameters":{"type":"object"}}}]}`,
		},
		"of a search":               {"kb_search", `{"text":"x","text":"y"}`, `{"text":"y"}`},
		"of a program":              {"exec_run", `{"argv":["/bin/a"],"argv":["/bin/b"]}`, `{"argv":["/bin/b"]}`},
		"of an agent that is asked": {"agent_launch", `{"agent":"a","agent":"b"}`, `{"agent":"b"}`},
		"of a request to a host": {
			"net_http", `{"url":"https://a.example/","url":"https://b.example/"}`,
			`{"url":"https://b.example/"}`,
		},
	} {
		args := func(text string) []string {
			switch c.call {
			case "kb_search":
				return []string{"notes", text}
			case "exec_run", "net_http":
				return []string{text, ""}
			}
			return []string{text}
		}
		if n, why := newRig(t).call(c.call, args(c.twice)...); n != -28 || !strings.Contains(why, "twice") {
			t.Errorf("%s: %d %s", name, n, why)
		}
		if n, why := newRig(t).call(c.call, args(c.once)...); strings.Contains(why, "twice") {
			t.Errorf("control: %s: %d %s", name, n, why)
		}
	}
}

// What no reader takes comes in by no argument that holds a document. Controls: the
// good one does.
func TestNoArgumentIsReadTwoWays(t *testing.T) {
	for around, read := range map[string]func(text string) error{
		"%s": func(text string) error {
			if n, why := newRig(t).call("result", text); n != 0 {
				return errors.New(why)
			}
			return nil
		},
		`{"agent":"critic","input":%s}`: func(text string) error {
			_, err := decodeLaunch([]string{text})
			return err
		},
		`{"server":"s","tool":"t","arguments":{"x":%s}}`: func(text string) error {
			_, err := decodeMCP([]string{text})
			return err
		},
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"t","parameters":{"x":%s}}}]}`: func(text string) error {
			_, err := model.ParseComplete(text)
			return err
		},
	} {
		bad, good := jsontest.Documents(around)
		if err := read(good); err != nil {
			t.Errorf("control: %s: %v", good, err)
		}
		for name, text := range bad {
			if read(text) == nil {
				t.Errorf("%s: %s is taken: %.80s", around, name, text)
			}
		}
	}
}
