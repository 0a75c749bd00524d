package compose

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/schema"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/launcher/run"
)

// MaxInput bounds what an agent is given to read.
const MaxInput = 64 << 20

// CheckInput refuses bytes that are not what the manifest says the agent takes. Where
// they break its schema the error is a [*schema.Error], which says where in them.
func CheckInput(m *bundles.Manifest, data []byte) error {
	if len(data) > MaxInput {
		return fmt.Errorf("more than %d MiB", MaxInput>>20)
	}
	switch m.Input {
	case bundles.InputBytes:
		return nil
	case bundles.InputText:
		if !utf8.Valid(data) {
			return errors.New(`the agent takes text, and this is not UTF-8; with [input] type = "bytes" in its manifest it ` +
				"would take any bytes")
		}
		return nil
	}
	if err := strictjson.Check(data); err != nil {
		return fmt.Errorf("%w; give one JSON document, or @FILE for that of a file: a text in quotes, as in --input '\"hi\"', "+
			`or as it is to an agent with [input] type = "text" in its manifest`, err)
	}
	return fits(m.Schemas["with"], data)
}

// fits holds a JSON document against the schema of a manifest; nil takes any. A schema
// that is not understood takes none: what it would refuse is not known.
func fits(text, data []byte) error {
	if text == nil {
		return nil
	}
	with, err := schema.Compile(text, nil)
	if err != nil {
		return fmt.Errorf("the schema of the input, [schemas.with] in the agent's manifest, is not understood: %w", err)
	}
	v, err := schema.Decode(data)
	if err != nil {
		return err
	}
	return with.Check(v)
}

// InputOf is what the agent reads where it is given a JSON value, as by requests
// and by other agents: a string is the text of an agent that takes text, and the
// base64 of what an agent that takes bytes reads. nil is no input.
func InputOf(m *bundles.Manifest, value json.RawMessage) ([]byte, error) {
	if value == nil || m.Input != bundles.InputText && m.Input != bundles.InputBytes {
		return value, nil
	}
	text, err := strictjson.Text(value)
	if m.Input == bundles.InputText {
		if err != nil {
			return nil, errors.New("the agent takes text: give it as a JSON string")
		}
		return []byte(text), nil
	}
	var data []byte
	if err == nil {
		data, err = base64.StdEncoding.Strict().DecodeString(text)
	}
	if err != nil {
		return nil, errors.New("the agent takes bytes: give them as a JSON string of base64, as base64 -w0 prints it")
	}
	return data, nil
}

// InputSchema is the schema of the values that [InputOf] takes; nil: any.
func InputSchema(m *bundles.Manifest) json.RawMessage {
	switch m.Input {
	case bundles.InputText:
		return json.RawMessage(`{"type":"string"}`)
	case bundles.InputBytes:
		return json.RawMessage(`{"type":"string","description":"any bytes, in base64"}`)
	}
	return m.Schemas["with"]
}

// judged has the run given nothing but what its manifest says the agent takes,
// whoever launches it.
func judged(c *Composition, spec *run.Spec) error {
	name := "input"
	if c.Origin.Surface <= FromDaemon {
		name = "--input"
	}
	check := func(data []byte) error {
		if err := CheckInput(c.Bundle.Manifest, data); err != nil {
			return InputErr(fmt.Errorf("%s: %w", name, err))
		}
		return nil
	}
	if read := spec.ReadInput; read != nil {
		spec.ReadInput = func(ctx context.Context) ([]byte, error) {
			data, err := read(ctx)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", name, err)
			}
			return data, check(data)
		}
	}
	if spec.Input == nil {
		return nil
	}
	return check(spec.Input)
}

// InputsOf are the further inputs of turns, which come as JSON values, as
// [InputOf] reads them. One that is no such value is the agent's to be told.
func InputsOf(m *bundles.Manifest, inputs run.Inputs) run.Inputs {
	if inputs == nil {
		return nil
	}
	return typedInputs{inputs, func(value []byte) ([]byte, error) { return InputOf(m, value) }}
}

// A typedInputs makes of each input what the agent takes.
type typedInputs struct {
	run.Inputs
	read func([]byte) ([]byte, error)
}

// Next implements [run.Inputs].
func (t typedInputs) Next(ctx context.Context) ([]byte, error) {
	data, err := t.Inputs.Next(ctx)
	if err != nil {
		return nil, err
	}
	if data, err = t.read(data); err != nil {
		return nil, &hostcalls.Fail{Errno: hostcalls.Inval, Hint: "input: " + err.Error() + "; ask for the next one"}
	}
	return data, nil
}

// lineOf is a further input that comes as it is: a line, which is a JSON document
// only where its agent wants one to be.
func lineOf(m *bundles.Manifest) func([]byte) ([]byte, error) {
	return func(line []byte) ([]byte, error) {
		if m.Input == bundles.InputText {
			return line, CheckInput(m, line)
		}
		return line, nil
	}
}
