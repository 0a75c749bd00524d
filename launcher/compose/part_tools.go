package compose

import (
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/schema"
	"runloop.dev/rlp/launcher/run"
)

// attach gives a run the tools of its bundle, and who is asked before they, or
// whatever else the operator wants to be asked about, are used.
func (a *Runner) attach(c *Composition, spec *run.Spec) error {
	tools, err := c.Tools()
	if err != nil {
		return InputErr(err)
	}
	spec.Components.Tools, spec.Components.Added = tools, a.Added
	spec.Components.Confirm = a.confirm(c, spec.Agent)
	spec.Components.ConfirmExternal = c.Config.Security.ConfirmExternalActions
	return nil
}

// Tools are those of the bundle, ready to be judged. One that could never be
// called as it stands refuses the bundle.
func (c *Composition) Tools() ([]hostcalls.Tool, error) {
	list := make([]hostcalls.Tool, 0, len(c.Bundle.Tools))
	for i := range c.Bundle.Tools {
		from := &c.Bundle.Tools[i]
		t, err := c.tool(from)
		if err == nil {
			err = t.Check()
		}
		if err != nil {
			return nil, &bundles.Error{
				File: from.Pos.File, Line: from.Pos.Line, Column: from.Pos.Column, Code: "tools", Message: "the tool " + from.ID +
					": " + err.Error(),
			}
		}
		list = append(list, t)
	}
	return list, nil
}

func (c *Composition) tool(from *bundles.Tool) (hostcalls.Tool, error) {
	t := hostcalls.Tool{
		ID: from.ID, Description: from.Description, InputSchema: from.Input, Tokens: from.Budget.Tokens,
		MicroUSD: from.Budget.MicroUSD, Confirm: from.Confirm, Tags: from.Tags,
	}
	if t.InputSchema == nil {
		t.InputSchema = []byte(`{"type":"object"}`)
	}
	use := caps.Request{Family: caps.Secrets, Mode: caps.Use}
	dst := ""
	if x := from.Exec; x != nil {
		file, err := c.programsOf()(x.Command)
		if err != nil {
			return t, err
		}
		t.Program = &hostcalls.ToolProgram{
			Command: x.Command, File: file.Path, Args: c.placedIn(x.Args),
			Env: toolFields(x.Env), Timeout: x.Timeout,
		}
		for _, v := range x.Env {
			t.Later = append(t.Later, caps.Request{Family: caps.Env, Name: v.Name})
		}
	} else {
		t.Request = &hostcalls.ToolRequest{
			Method: from.HTTP.Method, URL: from.HTTP.URL,
			Headers: toolFields(from.HTTP.Headers), Timeout: from.HTTP.Timeout,
		}
		dst = "@" + from.HTTP.Host
	}
	declared := from.Capabilities
	for _, p := range from.Placed {
		g, err := caps.ParseGrant(p.Domain + c.params[p.Param])
		if err != nil { // it has no value
			t.Needs = append(t.Needs, caps.Request{Family: caps.FS, Name: "{" + p.Param + "}"})
			continue
		}
		declared = append(declared[:len(declared):len(declared)], caps.Entry{Grant: g, Pos: caps.Pos(p.Pos)})
	}
	if err := c.needs(&t, declared); err != nil {
		return t, err
	}
	for _, id := range from.Secrets {
		t.Needs = append(t.Needs, caps.Request{Family: caps.Secrets, Mode: caps.Get, Name: id})
		use.Name = id + dst
		t.Later = append(t.Later, use)
	}
	return t, c.schemas(&t, from)
}

// placedIn are arguments with the values of params where they are named.
func (c *Composition) placedIn(args []string) []string {
	var pairs []string
	for name, path := range c.params {
		if r, err := c.filesOf()(path); err == nil {
			path = r.Path // which is where a lane shows it
		}
		pairs = append(pairs, bundles.ParamMark(name), path)
	}
	list, place := slices.Clone(args), strings.NewReplacer(pairs...)
	for i := range list {
		list[i] = place.Replace(list[i])
	}
	return list
}

// needs are the capabilities that a tool declares, paths as policies know them.
// The host of its own request is not asked for in every method: there is one
// that the tool has.
func (c *Composition) needs(t *hostcalls.Tool, declared []caps.Entry) error {
	canonical, _, err := run.Canonical(run.Policy{Base: declared}, run.Resolvers{
		Files:    c.filesOf(),
		Programs: c.programsOf(),
	})
	if err != nil {
		return err
	}
	own := t.Own()
	files := &caps.Layer{Name: "tool:" + t.ID, Bounds: []caps.Bound{{Family: caps.FS, Modes: caps.AllModes(caps.FS)}}}
	for _, e := range canonical.Base {
		if e.Grant.Family == caps.FS {
			files.Allow = append(files.Allow, e)
		}
		if e.Grant.Family == own.Family && e.Grant.Scope == own.Name && e.Grant.Modes.Has(own.Mode) {
			continue
		}
		requests, err := caps.ParseRequest(e.Grant.String())
		if err != nil {
			return err
		}
		t.Needs = append(t.Needs, requests...)
	}
	t.Files = files
	return nil
}

// schemas give the tool its two checks. Without a schema everything is right
// that is JSON, and a result may be a text as well.
func (c *Composition) schemas(t *hostcalls.Tool, from *bundles.Tool) error {
	files := make(map[string][]byte, len(from.Schemas))
	for _, name := range from.Schemas {
		files[name] = c.Bundle.Files[name]
	}
	input, err := compiled("input_schema", from.Input, files)
	if err != nil {
		return err
	}
	result, err := compiled("result_schema", from.Result, files)
	if err != nil {
		return err
	}
	t.Input = func(text []byte) ([]byte, error) {
		v, err := schema.Decode(text)
		if err != nil {
			return nil, err
		}
		return checked(input, v)
	}
	t.Result = func(text []byte) ([]byte, error) {
		v, err := schema.Decode(text)
		if err != nil {
			v = strings.ToValidUTF8(string(text), "\ufffd")
		}
		return checked(result, v)
	}
	return nil
}

func compiled(what string, text []byte, files map[string][]byte) (*schema.Schema, error) {
	if text == nil {
		return &schema.Schema{}, nil
	}
	s, err := schema.Compile(text, files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return s, nil
}

func checked(s *schema.Schema, v any) ([]byte, error) {
	if err := s.Check(v); err != nil {
		return nil, err
	}
	return schema.Encode(v)
}

// toolFields are headers or variables with the places of secrets cut out.
func toolFields(from []bundles.ToolField) []hostcalls.ToolField {
	list := make([]hostcalls.ToolField, 0, len(from))
	for _, f := range from {
		field := hostcalls.ToolField{Name: f.Name}
		rest := f.Value
		for _, id := range f.Secrets {
			before, after, _ := strings.Cut(rest, bundles.SecretMark(id))
			field.Parts = append(field.Parts, hostcalls.ToolPart{Text: before}, hostcalls.ToolPart{Secret: id})
			rest = after
		}
		field.Parts = append(field.Parts, hostcalls.ToolPart{Text: rest})
		list = append(list, field)
	}
	return list
}
