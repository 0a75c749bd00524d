package modelapi

import (
	"encoding/json"
	"net/http"
)

// events writes server-sent events, each as soon as it is there.
type events struct {
	w     http.ResponseWriter
	began bool
}

func (e *events) begin() {
	e.began = true
	e.w.Header().Set("Content-Type", "text/event-stream")
	e.w.Header().Set("Cache-Control", "no-cache")
	e.w.WriteHeader(http.StatusOK)
}

// send writes one event; name is "" for one without.
func (e *events) send(name string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		return
	}
	e.raw(name, text)
}

func (e *events) raw(name string, data []byte) {
	var line []byte
	if name != "" {
		line = append(append(line, "event: "...), name+"\n"...)
	}
	line = append(append(append(line, "data: "...), data...), "\n\n"...)
	_, _ = e.w.Write(line) // who went away has ended the call by it
	_ = http.NewResponseController(e.w).Flush()
}
