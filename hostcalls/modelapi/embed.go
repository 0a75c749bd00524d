package modelapi

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
)

// embed answers OpenAI's embeddings.
func (h *Handler) embed(w http.ResponseWriter, r *http.Request, body []byte) {
	g := object{}
	format := "float"
	err := fields("", body, map[string]rule{
		"model": into(g, "model"), "dimensions": into(g, "dimensions"), "user": hint,
		"encoding_format": text("encoding_format", &format),
		"input": func(raw json.RawMessage) error {
			if raw[0] == '"' {
				raw = json.RawMessage("[" + string(raw) + "]")
			}
			g["input"] = raw
			return nil
		},
	})
	if err == nil && format != "float" && format != "base64" {
		err = only("encoding_format", `"float"`, `"base64"`)(nil)
	}
	var asked []byte
	if err == nil {
		asked, err = json.Marshal(g)
	}
	if err != nil {
		tell(w, http.StatusBadRequest, openaiError(http.StatusBadRequest, failure{"invalid_request", err.Error()}))
		return
	}
	got, err := h.Asker.Embed(r.Context(), string(asked))
	if err != nil {
		status, f := h.refused(w, err)
		tell(w, status, openaiError(status, f))
		return
	}
	data := []object{}
	for i, v := range got.Vectors {
		var numbers any = v
		if format == "base64" {
			numbers = packed(v)
		}
		data = append(data, object{"object": "embedding", "index": i, "embedding": numbers})
	}
	tell(w, http.StatusOK, object{
		"object": "list", "data": data, "model": got.Model,
		"usage": object{"prompt_tokens": got.Usage.TokensIn, "total_tokens": got.Usage.TokensIn},
	})
}

// packed are numbers as their bytes.
func packed(v []float32) string {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
