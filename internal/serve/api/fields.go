package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/serve/service"
)

// A runBody is what the body of POST /run says.
type runBody struct {
	request  service.Request
	wait     bool
	inPolicy []string // fields of the grant that stand below policy
	grant    []strictjson.Member
	problems service.FieldErrors
}

// A field reads one member of a body.
type field func(b *runBody, path string, raw []byte)

// grantFields are those that narrow; what they mean is read by the host, as in
// every other grant.
func grantFields() []string {
	return []string{
		"allowed_adapters", "forbidden_adapters", "forbidden_effects", "forbidden_effect_tiers",
		"forbidden_privilege_tiers", "limits", "adapter_constraints",
	}
}

// runFields are the fields of POST /run.
func runFields() map[string]field {
	text := func(to func(*service.Request) *string) field {
		return func(b *runBody, path string, raw []byte) {
			if s, ok := b.text(path, raw); ok {
				*to(&b.request) = s
			}
		}
	}
	list := func(to func(*service.Request) *[]string) field {
		return func(b *runBody, path string, raw []byte) { *to(&b.request) = b.list(path, raw) }
	}
	all := map[string]field{
		"agent":  text(func(q *service.Request) *string { return &q.Agent }),
		"bundle": (*runBody).bundle,
		"input":  func(b *runBody, _ string, raw []byte) { b.request.Input = bytes.Clone(raw) },
		"input_base64": func(b *runBody, path string, raw []byte) {
			b.request.InputBytes = b.base64(path, raw, "is not base64, as base64 -w0 prints it")
		},
		"args":     list(func(q *service.Request) *[]string { return &q.Args }),
		"profiles": list(func(q *service.Request) *[]string { return &q.Profiles }),
		"allow":    list(func(q *service.Request) *[]string { return &q.Allow }),
		"deny":     list(func(q *service.Request) *[]string { return &q.Deny }),
		"policy":   (*runBody).policy,
		"params":   (*runBody).params,
		"seed":     (*runBody).seed,
		"wait":     func(b *runBody, path string, raw []byte) { b.flag(&b.wait, path, raw) },
		"turns":    func(b *runBody, path string, raw []byte) { b.flag(&b.request.Turns, path, raw) },
	}
	for _, name := range grantFields() {
		all[name] = func(b *runBody, _ string, raw []byte) {
			b.grant = append(b.grant, strictjson.Member{Key: name, Raw: raw})
		}
	}
	return all
}

// readRun reads the body of POST /run; what is wrong with its fields is in its
// problems.
func readRun(body []byte) (*runBody, error) {
	all, err := members(body)
	if err != nil {
		return nil, err
	}
	b := &runBody{wait: true}
	b.request.Door = service.HTTP
	fields := runFields()
	for _, m := range all {
		read, known := fields[m.Key]
		switch {
		case !known:
			b.unknown(m.Key, fields)
		case kindOf(m.Raw) == "null" && m.Key != "input": // which is a document itself
		default:
			read(b, m.Key, m.Raw)
		}
	}
	b.request.Grant = object(b.grant)
	return b, nil
}

func (b *runBody) wrong(path, format string, args ...any) {
	b.problems = append(b.problems, service.FieldError{Field: path, Why: fmt.Sprintf(format, args...)})
}

// foreignFields are words of another system for what a request says differently
// here.
func foreignFields() map[string]string {
	return map[string]string{
		"code": "programs are bundles here: name an installed agent as agent, or send an archive in base64 as bundle (rlp " +
			"agent build makes one)",
	}
}

func (b *runBody) unknown(key string, fields map[string]field) {
	if why, foreign := foreignFields()[key]; foreign {
		b.wrong(key, "%s", why)
		return
	}
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	b.wrong(strictjson.Shown(key), "there is no such field; there are %s", strings.Join(names, ", "))
}

func (b *runBody) text(path string, raw []byte) (string, bool) {
	s, err := strictjson.Text(raw)
	if err != nil {
		b.wrong(path, "is %s; write a string", kindOf(raw))
		return "", false
	}
	return s, true
}

func (b *runBody) list(path string, raw []byte) (list []string) {
	items, err := strictjson.Elements(raw)
	if err != nil {
		b.wrong(path, "is %s; write a list of strings", kindOf(raw))
		return nil
	}
	for i, item := range items {
		if s, ok := b.text(path+"["+strconv.Itoa(i)+"]", item); ok {
			list = append(list, s)
		}
	}
	return list
}

func (b *runBody) flag(to *bool, path string, raw []byte) {
	if strictjson.Unmarshal(raw, to) != nil {
		b.wrong(path, "is %s; write true or false", kindOf(raw))
	}
}

func (b *runBody) seed(path string, raw []byte) {
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		b.wrong(path, "is no whole number from 0 to 18446744073709551615")
		return
	}
	b.request.Seed = &n
}

// bundle is an archive in base64, or where one is.
func (b *runBody) bundle(path string, raw []byte) {
	s, ok := b.text(path, raw)
	switch {
	case !ok:
	case strings.HasPrefix(s, "oci://"):
		b.request.Reference = s
	default:
		b.request.Bundle = b.base64(path, raw,
			"is neither the base64 of a .tar or .tar.gz archive, as base64 -w0 prints it, nor oci://HOST/NAME:TAG")
	}
}

// base64 reads a string of base64; what is none is wrong as why says.
func (b *runBody) base64(path string, raw []byte, why string) []byte {
	s, ok := b.text(path, raw)
	if !ok {
		return nil
	}
	p, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		b.wrong(path, "%s", why)
	}
	return p
}

func (b *runBody) params(path string, raw []byte) {
	paths, err := strictjson.Members(raw)
	if err != nil {
		b.wrong(path, "is %s; write an object of paths", kindOf(raw))
		return
	}
	b.request.Params = map[string]string{}
	for _, m := range paths {
		if s, ok := b.text(path+"."+strictjson.Shown(m.Key), m.Raw); ok {
			b.request.Params[m.Key] = s
		}
	}
}

// policy is the text of an override, or the grant below a name of its own.
func (b *runBody) policy(path string, raw []byte) {
	switch kindOf(raw) {
	case "a string":
		b.request.Override, _ = b.text(path, raw)
	case "an object":
		grant, _ := strictjson.Members(raw) // which was read once
		for _, m := range grant {
			if !slices.Contains(grantFields(), m.Key) {
				b.wrong(path+"."+strictjson.Shown(m.Key), "there is no such field; there are %s", strings.Join(grantFields(), ", "))
				continue
			}
			b.inPolicy = append(b.inPolicy, m.Key)
			b.grant = append(b.grant, m)
		}
	default:
		b.wrong(path, "is %s; write an object with forbidden_adapters and its like, or the text of an override as a string",
			kindOf(raw))
	}
}

// twice finds the fields of the grant that are given at both places.
func (b *runBody) twice() {
	for i, m := range b.grant {
		if slices.ContainsFunc(b.grant[:i], func(o strictjson.Member) bool { return o.Key == m.Key }) {
			b.wrong("policy."+m.Key, "stands beside %s; keep one", m.Key)
		}
	}
}

// object is a document of members, nil if there are none.
func object(members []strictjson.Member) json.RawMessage {
	if len(members) == 0 {
		return nil
	}
	var doc bytes.Buffer
	doc.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			doc.WriteByte(',')
		}
		fmt.Fprintf(&doc, "%q:%s", m.Key, m.Raw)
	}
	doc.WriteByte('}')
	return doc.Bytes()
}

// placed gives what the host found wrong with the grant the paths of the body.
func (b *runBody) placed(fields service.FieldErrors) service.FieldErrors {
	out := make(service.FieldErrors, len(fields))
	for i, f := range fields {
		root := f.Field
		if end := strings.IndexAny(root, ".["); end >= 0 {
			root = root[:end]
		}
		if slices.Contains(b.inPolicy, root) {
			f.Field = "policy." + f.Field
		}
		out[i] = f
	}
	return out
}
