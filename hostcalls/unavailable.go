package hostcalls

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// The families below are checked and recorded like any other, and then answer
// notsup: this version has no component that would do them.

type asked struct {
	req    caps.Request
	target string
}

func unavailable(name string, args int, f caps.Family, decode func(in []string) (asked, error)) def {
	return define(name, args, f, gated[asked]{
		decode:  decode,
		touches: func(r asked) (caps.Request, string) { return r.req, r.target },
		budget:  func(*Host, asked) (caps.Code, bool) { return caps.Unavailable, true },
		do: func(context.Context, *Host, gate.Permit, asked) ([]byte, error) {
			return nil, errUnavailable
		},
	})
}

var (
	netHTTP       = unavailable("net_http", 2, caps.Net, decodeHTTP)
	kbSearch      = unavailable("kb_search", 2, caps.KBRead, decodeSearch)
	secretHandle  = unavailable("secret_handle", 1, caps.Secrets, decodeSecret)
	modelComplete = unavailable("model_complete", 1, caps.Model, decodeModel)
	modelEmbed    = unavailable("model_embed", 1, caps.Model, decodeModel)
	execRun       = unavailable("exec_run", 2, caps.Exec, decodeExec)
	mcpCall       = unavailable("mcp_call", 1, caps.MCP, decodeMCP)
	agentLaunch   = unavailable("agent_launch", 1, caps.Agents, decodeAgent)
)

func decodeJSON(text string, into any) error {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("the request is not the JSON object that this call takes: %w", err)
	}
	return nil
}

func decodeHTTP(in []string) (asked, error) {
	var r struct {
		Method string `json:"method"`
		URL    string `json:"url"`
	}
	if err := decodeJSON(in[0], &r); err != nil {
		return asked{}, err
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Opaque != "" || u.Host == "" {
		return asked{}, fmt.Errorf("url: not an absolute http or https URL")
	}
	if u.User != nil {
		return asked{}, fmt.Errorf("url: user information does not belong in a URL")
	}
	host, err := caps.HostPort(u.Scheme, u.Host)
	if err != nil {
		return asked{}, fmt.Errorf("url: %w", err)
	}
	if r.Method == "" {
		r.Method = "GET"
	}
	mode, ok := caps.NetMode(u.Scheme, r.Method)
	if !ok {
		return asked{}, fmt.Errorf("url: the scheme is https or http")
	}
	shown := u.Scheme + "://" + u.Host + u.EscapedPath()
	return asked{caps.Request{Family: caps.Net, Mode: mode, Name: host}, shown}, nil
}

func decodeSearch(in []string) (asked, error) {
	domain := strings.Clone(in[0])
	if err := checkText(domain); err != nil {
		return asked{}, err
	}
	return asked{caps.Request{Family: caps.KBRead, Name: domain}, domain}, nil
}

// decodeSecret keeps the id out of the record: what an agent asks for may be a
// secret's name that it should not even know.
func decodeSecret(in []string) (asked, error) {
	id := strings.Clone(in[0])
	if err := checkText(id); err != nil {
		return asked{}, err
	}
	return asked{caps.Request{Family: caps.Secrets, Mode: caps.Get, Name: id}, "secret"}, nil
}

func decodeModel(in []string) (asked, error) {
	var r struct {
		Model string `json:"model"`
	}
	if err := decodeJSON(in[0], &r); err != nil {
		return asked{}, err
	}
	if r.Model == "" {
		r.Model = "local:echo"
	}
	return named(caps.Model, r.Model)
}

func decodeExec(in []string) (asked, error) {
	var r struct {
		Argv []string `json:"argv"`
	}
	if err := decodeJSON(in[0], &r); err != nil {
		return asked{}, err
	}
	if len(r.Argv) == 0 || !strings.HasPrefix(r.Argv[0], "/") {
		return asked{}, fmt.Errorf("argv[0]: must be the absolute path of a program")
	}
	return named(caps.Exec, r.Argv[0])
}

func decodeMCP(in []string) (asked, error) {
	var r struct {
		Server string `json:"server"`
	}
	if err := decodeJSON(in[0], &r); err != nil {
		return asked{}, err
	}
	return named(caps.MCP, r.Server)
}

func decodeAgent(in []string) (asked, error) {
	var r struct {
		Agent string `json:"agent"`
	}
	if err := decodeJSON(in[0], &r); err != nil {
		return asked{}, err
	}
	return named(caps.Agents, r.Agent)
}

func named(f caps.Family, name string) (asked, error) {
	if name == "" {
		return asked{}, fmt.Errorf("%s: no name given", f.String())
	}
	if err := checkText(name); err != nil {
		return asked{}, err
	}
	return asked{caps.Request{Family: f, Name: name}, name}, nil
}
