package providers

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/url"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"runloop.dev/rlp/internal/model"
)

// openaiHost is where max_tokens is called max_completion_tokens; others that
// speak the protocol know the old name.
const openaiHost = "api.openai.com"

func (p *Providers) openaiOptions(t model.Target) []option.RequestOption {
	base := t.BaseURL
	if base == "" {
		base = "https://" + openaiHost + "/v1"
	}
	opts := []option.RequestOption{
		option.WithBaseURL(base), option.WithHTTPClient(p.client), option.WithMaxRetries(0),
	}
	if key := t.Key.Reveal(); key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	return opts
}

func (p *Providers) openaiStream(t model.Target, r *model.CompleteRequest) func(context.Context, *progress) error {
	service := openai.NewChatCompletionService(p.openaiOptions(t)...)
	params := openaiParams(t, r)
	return func(ctx context.Context, got *progress) error {
		stream := service.NewStreaming(ctx, params)
		defer stream.Close()
		for stream.Next() {
			got.began = true
			if err := got.openaiChunk(stream.Current()); err != nil {
				return err
			}
		}
		got.ended = got.reason != ""
		return stream.Err()
	}
}

func openaiParams(t model.Target, r *model.CompleteRequest) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model:         t.Model,
		Messages:      openaiMessages(r.Messages),
		Temperature:   opt(r.Temperature),
		TopP:          opt(r.TopP),
		Seed:          opt(r.Seed),
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	if r.MaxTokens > 0 {
		if u, err := url.Parse(t.BaseURL); t.BaseURL == "" || err == nil && u.Hostname() == openaiHost {
			p.MaxCompletionTokens = param.NewOpt(r.MaxTokens)
		} else {
			p.MaxTokens = param.NewOpt(r.MaxTokens)
		}
	}
	if len(r.Stop) > 0 {
		p.Stop.OfStringArray = r.Stop
	}
	for _, tool := range r.Tools {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(openaiFunction(tool)))
	}
	if c := r.ToolChoice; c != nil && c.Name != "" {
		p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: c.Name})
	} else if c != nil {
		p.ToolChoice.OfAuto = param.NewOpt(c.Mode)
	}
	if f := r.ResponseFormat; f != nil {
		p.ResponseFormat = openaiFormat(f)
	}
	return p
}

func openaiFunction(t model.Tool) shared.FunctionDefinitionParam {
	// The guest's schema goes out byte by byte: as a map it would lose numbers.
	return param.Override[shared.FunctionDefinitionParam](raw(t))
}

// raw is the JSON of v, which always has one.
func raw(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

func openaiFormat(f *model.ResponseFormat) openai.ChatCompletionNewParamsResponseFormatUnion {
	var u openai.ChatCompletionNewParamsResponseFormatUnion
	switch f.Type {
	case "json_object":
		u.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	case "json_schema":
		schema := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: f.Name, Schema: f.Schema}
		if f.Description != "" {
			schema.Description = param.NewOpt(f.Description)
		}
		if f.Strict {
			schema.Strict = param.NewOpt(true)
		}
		u.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: schema}
	default:
		u.OfText = &shared.ResponseFormatTextParam{}
	}
	return u
}

func opt[T comparable](v *T) param.Opt[T] {
	if v == nil {
		return param.Opt[T]{}
	}
	return param.NewOpt(*v)
}

func openaiMessages(list []model.Message) []openai.ChatCompletionMessageParamUnion {
	var out []openai.ChatCompletionMessageParamUnion
	for _, m := range list {
		var u openai.ChatCompletionMessageParamUnion
		switch m.Role {
		case "system":
			u = openai.SystemMessage(m.Content)
			u.OfSystem.Name = name(m.Name)
		case "developer":
			u = openai.DeveloperMessage(m.Content)
			u.OfDeveloper.Name = name(m.Name)
		case "assistant":
			u = openaiAssistant(m)
		case "tool":
			u = openai.ToolMessage(m.Content, m.ToolCallID)
		default:
			u = openai.UserMessage(m.Content)
			u.OfUser.Name = name(m.Name)
		}
		out = append(out, u)
	}
	return out
}

func name(s string) param.Opt[string] {
	if s == "" {
		return param.Opt[string]{}
	}
	return param.NewOpt(s)
}

func openaiAssistant(m model.Message) openai.ChatCompletionMessageParamUnion {
	a := &openai.ChatCompletionAssistantMessageParam{Name: name(m.Name)}
	if m.Content != "" || len(m.ToolCalls) == 0 {
		a.Content.OfString = param.NewOpt(m.Content)
	}
	for _, c := range m.ToolCalls {
		a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Function.Name, Arguments: c.Function.Arguments},
			},
		})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: a}
}

var errChunk = errors.New("a piece of an answer that makes no sense")

// openaiChunk takes one piece of a stream.
func (g *progress) openaiChunk(chunk openai.ChatCompletionChunk) error {
	if chunk.JSON.Usage.Valid() {
		g.metered = model.Metered{In: tokens(chunk.Usage.PromptTokens), Out: tokens(chunk.Usage.CompletionTokens)}
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			return errChunk // one was asked for
		}
		d := choice.Delta
		if err := g.wrote(d.Content, d.Refusal); err != nil {
			return err
		}
		g.text.WriteString(d.Content)
		g.text.WriteString(d.Refusal)
		for _, call := range d.ToolCalls {
			if err := g.openaiToolCall(call); err != nil {
				return err
			}
		}
		switch {
		case d.Refusal != "":
			g.reason = "content_filter"
		case choice.FinishReason != "" && g.reason == "":
			g.reason = g.openaiReason(choice.FinishReason)
		}
	}
	return nil
}

// openaiReason is a reason in the words that every model's answer has. Some
// servers stop where they call a tool.
func (g *progress) openaiReason(s string) string {
	switch {
	case s == "length" || s == "content_filter":
		return s
	case len(g.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// openaiToolCall adds a piece of a tool call to those that began. Some servers
// give every whole call the index 0: another id is another call.
func (g *progress) openaiToolCall(d openai.ChatCompletionChunkChoiceDeltaToolCall) error {
	at := int(d.Index)
	if at >= 0 && at < len(g.calls) && d.ID != "" && d.ID != g.calls[at].id {
		at = len(g.calls)
	}
	switch {
	case at < 0 || at > len(g.calls) || at >= model.MaxTools:
		return errChunk
	case at == len(g.calls):
		g.calls = append(g.calls, &calling{id: d.ID})
	}
	call := g.calls[at]
	call.name += d.Function.Name
	call.arguments.WriteString(d.Function.Arguments)
	return g.wrote(d.Function.Name, d.Function.Arguments)
}

func (p *Providers) openaiEmbed(ctx context.Context, t model.Target, r *model.EmbedRequest) (model.Vectors, error) {
	service := openai.NewEmbeddingService(p.openaiOptions(t)...)
	params := openai.EmbeddingNewParams{
		Model:          t.Model,
		Input:          openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: r.Input},
		EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat,
	}
	if r.Dimensions > 0 {
		params.Dimensions = param.NewOpt(r.Dimensions)
	}
	res, err := service.New(ctx, params)
	if err != nil {
		return model.Vectors{}, err
	}
	v := model.Vectors{Vectors: make([][]float32, len(r.Input)), Metered: model.Unmetered()}
	if res.Usage.JSON.PromptTokens.Valid() {
		v.Metered.In = tokens(res.Usage.PromptTokens)
	}
	floats := 0
	for _, e := range res.Data {
		if e.Index < 0 || e.Index >= int64(len(r.Input)) || v.Vectors[e.Index] != nil || len(e.Embedding) == 0 ||
			len(e.Embedding) != len(res.Data[0].Embedding) {
			return v, brokenVectors(v)
		}
		if floats += len(e.Embedding); floats > model.MaxFloats {
			return v, &model.Failure{Kind: model.TooLarge, Charge: model.ChargeMeasured, Metered: v.Metered}
		}
		vector := make([]float32, len(e.Embedding))
		for i, x := range e.Embedding {
			if vector[i] = float32(x); math.IsInf(float64(vector[i]), 0) {
				return v, brokenVectors(v)
			}
		}
		v.Vectors[e.Index] = vector
	}
	if len(res.Data) != len(r.Input) {
		return v, brokenVectors(v)
	}
	return v, nil
}

func brokenVectors(v model.Vectors) error {
	return &model.Failure{Kind: model.Broken, Charge: model.ChargeMeasured, Metered: v.Metered, Detail: "vectors that do not go with the inputs"}
}

// detail is what a provider says of its refusal, for the guest. What it says of
// a key that it does not take may quote the key.
func detail(err error) string {
	var o *openai.Error
	if errors.As(err, &o) && o.StatusCode != 401 && o.StatusCode != 403 {
		return join(o.Code, o.Message)
	}
	var a *anthropic.Error
	if errors.As(err, &a) && a.StatusCode != 401 && a.StatusCode != 403 {
		return anthropicDetail(a)
	}
	return ""
}

func join(code, message string) string {
	if code == "" {
		return message
	}
	return code + ": " + message
}
