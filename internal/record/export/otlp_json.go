package export

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// The shapes of OTLP/JSON: ids in hexadecimal, 64-bit numbers as text, enums as
// numbers.
type (
	jsonRequest struct {
		ResourceSpans []jsonResourceSpans `json:"resourceSpans"`
	}
	jsonResourceSpans struct {
		Resource   jsonResource     `json:"resource"`
		ScopeSpans []jsonScopeSpans `json:"scopeSpans"`
	}
	jsonResource struct {
		Attributes []jsonAttr `json:"attributes"`
	}
	jsonScopeSpans struct {
		Scope jsonScope  `json:"scope"`
		Spans []jsonSpan `json:"spans"`
	}
	jsonScope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	jsonSpan struct {
		Trace   string      `json:"traceId"`
		ID      string      `json:"spanId"`
		Parent  string      `json:"parentSpanId,omitempty"`
		Name    string      `json:"name"`
		Kind    int         `json:"kind"`
		Start   string      `json:"startTimeUnixNano"`
		End     string      `json:"endTimeUnixNano"`
		Attrs   []jsonAttr  `json:"attributes,omitempty"`
		Events  []jsonEvent `json:"events,omitempty"`
		Dropped uint32      `json:"droppedEventsCount,omitempty"`
		Status  *jsonStatus `json:"status,omitempty"`
	}
	jsonEvent struct {
		At    string     `json:"timeUnixNano"`
		Name  string     `json:"name"`
		Attrs []jsonAttr `json:"attributes,omitempty"`
	}
	jsonStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code"`
	}
	jsonAttr struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

func appendRequestJSON(dst []byte, resource []attr, spans []span) []byte {
	list := make([]jsonSpan, len(spans))
	for i := range spans {
		list[i] = spans[i].json()
	}
	r := jsonRequest{[]jsonResourceSpans{{
		jsonResource{jsonAttrs(resource)},
		[]jsonScopeSpans{{jsonScope{scopeName, scopeVersion}, list}},
	}}}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil { // of texts and numbers alone
		panic(err)
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

func (s *span) json() jsonSpan {
	j := jsonSpan{
		Trace: hex.EncodeToString(s.trace[:]), ID: hex.EncodeToString(s.id[:]), Name: s.name, Kind: s.kind,
		Start: strconv.FormatInt(s.start, 10), End: strconv.FormatInt(s.end, 10), Attrs: jsonAttrs(s.attrs),
		Dropped: s.dropped,
	}
	if s.parent != ([8]byte{}) {
		j.Parent = hex.EncodeToString(s.parent[:])
	}
	for _, e := range s.events {
		j.Events = append(j.Events, jsonEvent{strconv.FormatInt(e.at, 10), e.name, jsonAttrs(e.attrs)})
	}
	if s.status != 0 {
		j.Status = &jsonStatus{s.message, s.status}
	}
	return j
}

func jsonAttrs(list []attr) []jsonAttr {
	out := make([]jsonAttr, len(list))
	for i, a := range list {
		out[i] = jsonAttr{a.key, jsonValue(a.value)}
	}
	return out
}

func jsonValue(value any) map[string]any {
	switch v := value.(type) {
	case bool:
		return map[string]any{"boolValue": v}
	case int64:
		return map[string]any{"intValue": strconv.FormatInt(v, 10)}
	case float64:
		return map[string]any{"doubleValue": v}
	case []string:
		values := make([]map[string]any, len(v))
		for i, s := range v {
			values[i] = jsonValue(s)
		}
		return map[string]any{"arrayValue": map[string]any{"values": values}}
	}
	return map[string]any{"stringValue": value}
}
