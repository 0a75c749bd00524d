package compose

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/hostcalls"
)

// What an agent reads of a JSON value is said by its manifest alone.
//
//rlp:holds D7
func TestInputOfValues(t *testing.T) {
	for _, c := range []struct{ kind, value, want, wrong string }{
		{bundles.InputJSON, `"hi"`, `"hi"`, ""},
		{bundles.InputJSON, `{"a":1}`, `{"a":1}`, ""},
		{bundles.InputText, `"gr\u00fcn \""`, `grün "`, ""},
		{bundles.InputText, `""`, "", ""},
		{bundles.InputText, `{"a":1}`, "", "JSON string"},
		{bundles.InputText, `null`, "", "JSON string"},
		{bundles.InputBytes, `"YQBi/w=="`, "a\x00b\xff", ""},
		{bundles.InputBytes, `"YQBi/w"`, "", "base64"},
		{bundles.InputBytes, `"a b"`, "", "base64"},
		{bundles.InputBytes, `5`, "", "base64"},
	} {
		got, err := InputOf(&bundles.Manifest{Input: c.kind}, json.RawMessage(c.value))
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) || got != nil {
				t.Errorf("%s %s: %q, %v", c.kind, c.value, got, err)
			}
		} else if err != nil || string(got) != c.want {
			t.Errorf("%s %s: %q, %v", c.kind, c.value, got, err)
		}
	}
	if got, err := InputOf(&bundles.Manifest{Input: bundles.InputText}, nil); got != nil || err != nil {
		t.Errorf("none: %q, %v", got, err)
	}
}

// Bytes as they are have the same bound for each type.
//
//rlp:holds D7
func TestInputAsItIs(t *testing.T) {
	large := make([]byte, MaxInput+1)
	for _, c := range []struct {
		kind  string
		data  []byte
		wrong string
	}{
		{"", []byte("hi"), `[input] type = "text"`}, // a module without a bundle
		{bundles.InputJSON, []byte("hi"), `--input '"hi"'`},
		{bundles.InputJSON, []byte(`"hi"`), ""},
		{bundles.InputText, []byte("hi"), ""},
		{bundles.InputText, []byte("a\xff"), "UTF-8"},
		{bundles.InputBytes, []byte("a\xff"), ""},
		{bundles.InputBytes, large[:MaxInput], ""},
		{bundles.InputJSON, large, "64 MiB"},
		{bundles.InputText, large, "64 MiB"},
		{bundles.InputBytes, large, "64 MiB"},
	} {
		err := CheckInput(&bundles.Manifest{Input: c.kind}, c.data)
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s, %d bytes: %v, want %q", c.kind, len(c.data), err, c.wrong)
		}
	}
}

type values []string

func (v *values) Next(context.Context) ([]byte, error) {
	if len(*v) == 0 {
		return nil, io.EOF
	}
	next := (*v)[0]
	*v = (*v)[1:]
	return []byte(next), nil
}

// A further input that the agent does not take is told to it, and the next follows.
//
//rlp:holds D7
func TestInputsOfTurns(t *testing.T) {
	in := InputsOf(&bundles.Manifest{Input: bundles.InputText}, &values{`"one"`, `2`, `"three"`})
	var got []string
	for {
		data, err := in.Next(t.Context())
		var told *hostcalls.Fail
		switch {
		case errors.Is(err, io.EOF):
			if strings.Join(got, " ") != "one told three" {
				t.Errorf("%q", got)
			}
			return
		case errors.As(err, &told):
			data = []byte("told")
		case err != nil:
			t.Fatal(err)
		}
		got = append(got, string(data))
	}
}
