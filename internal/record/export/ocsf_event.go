package export

import "encoding/json"

// The shapes below are the attributes of OCSF that are used, in the order in
// which they are written.
type (
	ocsfEvent struct {
		ClassUID      int             `json:"class_uid"`
		ClassName     string          `json:"class_name"`
		CategoryUID   int             `json:"category_uid"`
		CategoryName  string          `json:"category_name"`
		ActivityID    int             `json:"activity_id"`
		ActivityName  string          `json:"activity_name"`
		TypeUID       int             `json:"type_uid"`
		TypeName      string          `json:"type_name"`
		Time          int64           `json:"time"`
		SeverityID    int             `json:"severity_id"`
		Severity      string          `json:"severity"`
		StatusID      int             `json:"status_id"`
		Status        string          `json:"status"`
		StatusCode    string          `json:"status_code,omitempty"`
		Detail        string          `json:"status_detail,omitempty"`
		ActionID      int             `json:"action_id"`
		Action        string          `json:"action"`
		DispositionID int             `json:"disposition_id"`
		Disposition   string          `json:"disposition"`
		Alert         bool            `json:"is_alert"`
		Policy        *ocsfPolicy     `json:"policy,omitempty"`
		Message       string          `json:"message"`
		Metadata      ocsfMetadata    `json:"metadata"`
		Actor         *ocsfActor      `json:"actor,omitempty"`
		API           *ocsfAPI        `json:"api,omitempty"`
		App           *ocsfProduct    `json:"app,omitempty"`
		Source        *ocsfEndpoint   `json:"src_endpoint,omitempty"`
		Destination   *ocsfEndpoint   `json:"dst_endpoint,omitempty"`
		Resources     []ocsfResource  `json:"resources,omitempty"`
		Model         *ocsfModel      `json:"ai_model,omitempty"`
		Trace         *ocsfUID        `json:"trace,omitempty"`
		Unmapped      json.RawMessage `json:"unmapped"`
	}
	ocsfMetadata struct {
		Version      string      `json:"version"`
		Product      ocsfProduct `json:"product"`
		Profiles     []string    `json:"profiles"`
		UID          string      `json:"uid"`
		EventCode    string      `json:"event_code"`
		LogName      string      `json:"log_name"`
		LogVersion   string      `json:"log_version"`
		Sequence     uint64      `json:"sequence"`
		Tenant       string      `json:"tenant_uid"`
		Correlation  string      `json:"correlation_uid"`
		OriginalTime string      `json:"original_time"`
	}
	ocsfProduct struct {
		Name    string `json:"name"`
		Vendor  string `json:"vendor_name,omitempty"`
		UID     string `json:"uid,omitempty"`
		Version string `json:"version,omitempty"`
	}
	ocsfActor struct {
		AppName string      `json:"app_name"`
		AppUID  string      `json:"app_uid"`
		Process ocsfProcess `json:"process"`
	}
	ocsfProcess struct {
		Name   string   `json:"name"`
		UID    string   `json:"uid"`
		Parent *ocsfUID `json:"parent_process,omitempty"`
	}
	ocsfUID struct {
		UID string `json:"uid"`
	}
	ocsfName struct {
		Name string `json:"name"`
	}
	ocsfAPI struct {
		Operation string        `json:"operation"`
		Service   ocsfName      `json:"service"`
		Request   ocsfUID       `json:"request"`
		Response  *ocsfResponse `json:"response,omitempty"`
	}
	ocsfResponse struct {
		Message      string `json:"message,omitempty"`
		Error        string `json:"error,omitempty"`
		ErrorMessage string `json:"error_message,omitempty"`
	}
	ocsfEndpoint struct {
		Name        string `json:"name,omitempty"`
		Hostname    string `json:"hostname,omitempty"`
		Port        int    `json:"port,omitempty"`
		InstanceUID string `json:"instance_uid,omitempty"`
		Service     string `json:"svc_name,omitempty"`
	}
	ocsfResource struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	ocsfModel struct {
		Provider string `json:"ai_provider"`
		Name     string `json:"name"`
		UID      string `json:"uid"`
	}
	ocsfPolicy struct {
		Name    string `json:"name"`
		Applied bool   `json:"is_applied"`
	}
)
