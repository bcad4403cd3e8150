package cloud

import (
	"net/http"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
)

// TestTurnedAway: only what is known to be sent in place of any work proves that
// no server was made. The bodies are those of the programs.
func TestTurnedAway(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status   int
		body     string
		doubtful bool
	}{
		"429": {429, `{"overLimit": {"code": 429, "message": "This request was rate-limited."}}`, false},
		"413": {413, `{"overLimit": {"code": 413, "message": "This request was rate-limited."}}`, false},
		"498": {498, "", false},
		"Nova's 503": {
			503, `{"serviceUnavailable": {"code": 503, "message": "The server is currently unavailable."}}`, false,
		},
		"keystonemiddleware, JSON": {
			503, `{"message": "The server is currently unavailable. Please try again at a later time.<br /><br />\nThe Keystone service is temporarily unavailable.\n\n", "code": "503 Service Unavailable", "title": "Service Unavailable"}`, false,
		},
		"keystonemiddleware, HTML": {
			503, "<html>\n <head>\n  <title>503 Service Unavailable</title>\n </head>\n <body>\n  <h1>503 Service Unavailable</h1>\n  The server is currently unavailable. Please try again at a later time.<br /><br />\nThe Keystone service is temporarily unavailable.\n\n\n </body>\n</html>", false,
		},
		"HAProxy without a server": {
			503, "<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>\n", false,
		},
		"HAProxy, half a request": {
			408, "<html><body><h1>408 Request Time-out</h1>\nYour browser didn't send a complete request in time.\n</body></html>\n", false,
		},
		"Apache httpd without a backend": {
			503, "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n<title>503 Service Unavailable</title>\n</head><body>\n<h1>Service Unavailable</h1>\n<p>The server is temporarily unable to service your\nrequest due to maintenance downtime or capacity\nproblems. Please try again later.</p>\n</body></html>\n", false,
		},
		"nginx, limit_req": {
			503, "<html>\r\n<head><title>503 Service Temporarily Unavailable</title></head>\r\n<body>\r\n<center><h1>503 Service Temporarily Unavailable</h1></center>\r\n<hr><center>nginx/1.24.0</center>\r\n</body>\r\n</html>\r\n", false,
		},
		"Envoy without a backend":    {503, "no healthy upstream", false},
		"Envoy without a connection": {503, "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure, transport failure reason: delayed connect error: 111", false},
		"Traefik without a backend":  {503, "no available server", false},

		"Envoy, which lost the connection": {503, "upstream connect error or disconnect/reset before headers. reset reason: connection termination", true},
		"a 503 that says nothing":          {503, "<html><body><h1>503 Service Unavailable</h1>\n</body></html>", true},
		"an empty 503":                     {503, "", true},
		"HAProxy's 502":                    {502, "<html><body><h1>502 Bad Gateway</h1>\nThe server returned an invalid or incomplete response.\n</body></html>\n", true},
		"nginx's 502":                      {502, "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx/1.24.0</center>\r\n</body>\r\n</html>\r\n", true},
		"504":                              {504, "<html><body><h1>504 Gateway Time-out</h1>\nThe server didn't respond in time.\n</body></html>\n", true},
		"Nova's 500":                       {500, `{"computeFault": {"code": 500, "message": "Unexpected API Error."}}`, true},
		"a 408 that says nothing":          {408, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := answered("create server a", compute, gophercloud.ErrUnexpectedResponseCode{
				Actual: row.status, Body: []byte(row.body), ResponseHeader: http.Header{},
			}, true, &redactor{})
			if got.Doubtful != row.doubtful || got.Kind != ErrTransient { //nolint:errorlint // the field itself
				t.Errorf("doubtful: got %v, want %v; kind %v", got.Doubtful, row.doubtful, got.Kind)
			}
		})
	}
}
