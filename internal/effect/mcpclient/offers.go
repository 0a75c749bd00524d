package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/base/strictjson"
)

// The methods beside tools/call by which a session that has [Session.Offers] asks
// a server for content.
const (
	GetPrompt    = "prompts/get"
	ReadResource = "resources/read"
)

// A Kind is what a server offers beside tools.
type Kind string

// The kinds. No tool that can be called has a name like an offer's: these have a
// blank in them.
const (
	Instructions Kind = "instructions"
	Prompt       Kind = "prompt"
	Resource     Kind = "resource"
	Template     Kind = "template"
)

// offer is what a server says of something else than a tool, as a tool is kept: by
// its kind and name, and whole, in the place of a schema.
func offer(kind Kind, name, description string, whole any) (Tool, error) {
	said, err := marshal(whole)
	if err != nil {
		return Tool{}, ErrGone
	}
	return Tool{Name: valid(string(kind) + " " + name), Description: valid(description), Schema: said}, nil
}

// Of are what list has of a kind, each as the server said it.
func Of(list []Tool, kind Kind) []json.RawMessage {
	said := []json.RawMessage{}
	for _, t := range list {
		if strings.HasPrefix(t.Name, string(kind)+" ") {
			said = append(said, t.Schema)
		}
	}
	return said
}

// Offers are all that the server says of itself: its tools, and beside them its
// instructions, prompts, resources and templates of resources.
func (s *Session) Offers(ctx context.Context) ([]Tool, error) {
	list, err := s.Tools(ctx)
	if err != nil {
		return nil, err
	}
	hello := s.sdk.InitializeResult()
	if hello == nil {
		return nil, ErrGone
	}
	if hello.Instructions != "" {
		t, err := offer(Instructions, "of the server", hello.Instructions, hello.Instructions)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	if c := hello.Capabilities; c != nil && c.Prompts != nil {
		if list, err = s.pages(ctx, list, s.prompts); err != nil {
			return nil, err
		}
	}
	if c := hello.Capabilities; c != nil && c.Resources != nil {
		if list, err = s.pages(ctx, list, s.resources); err != nil {
			return nil, err
		}
		if list, err = s.pages(ctx, list, s.templates); err != nil {
			return nil, err
		}
	}
	return sorted(list)
}

// pages adds to list what ask gets from page to page.
func (s *Session) pages(ctx context.Context, list []Tool,
	ask func(ctx context.Context, cursor string) ([]Tool, string, error),
) ([]Tool, error) {
	size, cursor := 0, ""
	for range maxPages {
		var more []Tool
		err := s.within(ctx, func(ctx context.Context) (err error) {
			more, cursor, err = ask(ctx, cursor)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, t := range more {
			size += len(t.Name) + len(t.Description) + len(t.Schema)
		}
		if list = append(list, more...); size > maxList || len(list) > MaxTools {
			return nil, ErrMany
		}
		if cursor == "" {
			return list, nil
		}
	}
	return nil, ErrMany
}

// each is offer for each of list, by what says how one is called and described.
func each[T any](list []*T, kind Kind, says func(*T) (name, description string)) ([]Tool, error) {
	all := make([]Tool, 0, len(list))
	for _, v := range list {
		if v == nil {
			return nil, ErrGone
		}
		name, description := says(v)
		t, err := offer(kind, name, description, v)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (s *Session) prompts(ctx context.Context, cursor string) ([]Tool, string, error) {
	page, err := s.sdk.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
	if err != nil {
		return nil, "", err
	}
	list, err := each(page.Prompts, Prompt, func(p *mcp.Prompt) (string, string) {
		p.Meta, p.Icons = nil, nil
		return p.Name, p.Description
	})
	return list, page.NextCursor, err
}

func (s *Session) resources(ctx context.Context, cursor string) ([]Tool, string, error) {
	page, err := s.sdk.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
	if err != nil {
		return nil, "", err
	}
	list, err := each(page.Resources, Resource, func(r *mcp.Resource) (string, string) {
		r.Meta, r.Icons, r.Annotations = nil, nil, nil
		return r.URI, r.Description
	})
	return list, page.NextCursor, err
}

func (s *Session) templates(ctx context.Context, cursor string) ([]Tool, string, error) {
	page, err := s.sdk.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
	if err != nil {
		return nil, "", err
	}
	list, err := each(page.ResourceTemplates, Template, func(r *mcp.ResourceTemplate) (string, string) {
		r.Meta, r.Icons, r.Annotations = nil, nil, nil
		return r.URITemplate, r.Description
	})
	return list, page.NextCursor, err
}

// Get has the server answer a method of [Methods]; params are a JSON object. The
// answer is the result of that method.
func (s *Session) Get(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	var got any
	err := s.within(ctx, func(ctx context.Context) (err error) {
		switch method {
		case GetPrompt:
			var p mcp.GetPromptParams
			if err = strictjson.Unmarshal(params, &p, strictjson.UnknownFields|strictjson.Enclosing); err == nil {
				got, err = s.sdk.GetPrompt(ctx, &p)
			}
		case ReadResource:
			var p mcp.ReadResourceParams
			if err = strictjson.Unmarshal(params, &p, strictjson.UnknownFields|strictjson.Enclosing); err == nil {
				got, err = s.sdk.ReadResource(ctx, &p)
			}
		default:
			err = fmt.Errorf("%q asks for no content", method)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return marshal(got)
}

// Methods are those that list has something to ask for by.
func Methods(list []Tool) []string {
	var methods []string
	has := func(kinds ...Kind) bool {
		return slices.ContainsFunc(kinds, func(k Kind) bool { return len(Of(list, k)) > 0 })
	}
	if has(Prompt) {
		methods = append(methods, GetPrompt)
	}
	if has(Resource, Template) {
		methods = append(methods, ReadResource)
	}
	return methods
}
