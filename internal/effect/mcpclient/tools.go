package mcpclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what a server says of its tools.
const (
	MaxTools = 1024
	maxPages = 64
	maxList  = 4 << 20 // bytes of all names, descriptions and schemas
)

// A Tool is what a server says of one of its tools, as far as anybody is told of
// it. Schema is canonical: the same schema is the same bytes.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"inputSchema"`
}

// What a list of tools can be refused for.
var (
	ErrTwice = errors.New("the server has two tools of one name")
	ErrMany  = fmt.Errorf("the server has more than %d tools, or says more than %d MiB of them", MaxTools, maxList>>20)
)

// Tools are the server's, by name.
func (s *Session) Tools(ctx context.Context) ([]Tool, error) {
	s.changed.Store(false) // before it is asked: what changes from here on is said again
	var list []Tool
	size, cursor := 0, ""
	for range maxPages {
		var page *mcp.ListToolsResult
		err := s.within(ctx, func(ctx context.Context) (err error) {
			page, err = s.sdk.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			tool, err := toolOf(t)
			if err != nil {
				return nil, err
			}
			list = append(list, tool)
			if size += len(tool.Name) + len(tool.Description) + len(tool.Schema); size > maxList || len(list) > MaxTools {
				return nil, ErrMany
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return sorted(list)
		}
	}
	return nil, ErrMany
}

func toolOf(t *mcp.Tool) (Tool, error) {
	if t == nil {
		return Tool{}, ErrGone
	}
	schema, err := marshal(t.InputSchema)
	if err != nil {
		return Tool{}, ErrGone
	}
	return Tool{Name: valid(t.Name), Description: valid(t.Description), Schema: schema}, nil
}

// valid is s as JSON can have it: what is written down reads the same again.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

func sorted(list []Tool) ([]Tool, error) {
	slices.SortFunc(list, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(list); i++ {
		if list[i].Name == list[i-1].Name {
			return nil, ErrTwice
		}
	}
	return list, nil
}

// Digest is "sha256:" and the digest of a sorted list of tools.
func Digest(list []Tool) string {
	h := sha256.New()
	for _, t := range list {
		for _, part := range []string{t.Name, t.Description, string(t.Schema)} {
			fmt.Fprintf(h, "%d:", len(part))
			h.Write([]byte(part))
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
