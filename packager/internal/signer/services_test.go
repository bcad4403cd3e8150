package signer

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// logAnswer is a Rekor version 1 log's answer about loggedBody.
func logAnswer() string {
	return fmt.Sprintf(`{"24296fb24b8ad77a": {"body": %q, "integratedTime": 1767225600, "logID": %q, "logIndex": 7, "verification": {
		"signedEntryTimestamp": "c2V0", "inclusionProof": {"checkpoint": "log\n1\nAA==\n\n", "hashes": [%q], "logIndex": 3, "rootHash": "00ff", "treeSize": 4}}}}`,
		base64.StdEncoding.EncodeToString([]byte(loggedBody)), hex.EncodeToString([]byte("log")), strings.Repeat("ab", 32))
}

const loggedBody = `{"apiVersion":"0.0.1","kind":"hashedrekord","spec":{"signature":{"content":"AA==","publicKey":{"content":"LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KQUE9PQotLS0tLUVORCBQVUJMSUMgS0VZLS0tLS0K"}}}}`

// signBlob signs with a log that answers as told.
func signBlob(tb testing.TB, log http.HandlerFunc, services Services) (*protobundle.Bundle, error) {
	tb.Helper()
	server := httptest.NewServer(log)
	tb.Cleanup(server.Close)
	keys, err := newEphemeral()
	if err != nil {
		tb.Fatal(err)
	}
	services.RekorURL = server.URL
	raw, err := (&Signer{keys: keys, services: services}).SignBlob(tb.Context(), []byte("x"))
	if err != nil {
		return nil, err
	}
	var b protobundle.Bundle
	return &b, protojson.Unmarshal(raw, &b)
}

func answerWith(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestLogEntry(t *testing.T) {
	t.Parallel()
	asked := 0
	for name, log := range map[string]http.HandlerFunc{
		"new": answerWith(http.StatusCreated, logAnswer()),
		"there already": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Path == "/api/v1/log/entries/24296fb24b8ad77a" {
				answerWith(http.StatusOK, logAnswer())(w, r)
				return
			}
			w.Header().Set("Location", "/api/v1/log/entries/24296fb24b8ad77a")
			w.WriteHeader(http.StatusConflict)
		},
		"busy at first": func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked == 1 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			answerWith(http.StatusCreated, logAnswer())(w, r)
		},
	} {
		b, err := signBlob(t, log, Services{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		entries := b.GetVerificationMaterial().GetTlogEntries()
		if len(entries) != 1 || entries[0].GetLogIndex() != 7 || entries[0].GetInclusionProof().GetTreeSize() != 4 ||
			string(entries[0].GetLogId().GetKeyId()) != "log" || string(entries[0].GetInclusionPromise().GetSignedEntryTimestamp()) != "set" ||
			len(entries[0].GetInclusionProof().GetHashes()) != 1 || string(entries[0].GetCanonicalizedBody()) != loggedBody {
			t.Errorf("%s: %v", name, entries)
		}
	}
}

// TestLogFails: nothing is signed without the entry that was asked for.
func TestLogFails(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("followed a redirect: %s", r.URL)
	}))
	t.Cleanup(elsewhere.Close)
	for name, log := range map[string]http.HandlerFunc{
		"refuses":             answerWith(http.StatusBadRequest, "no"),
		"breaks":              answerWith(http.StatusBadGateway, "<html>"),
		"HTML":                answerWith(http.StatusCreated, "<html>"),
		"nothing":             answerWith(http.StatusCreated, "{}"),
		"no proof":            answerWith(http.StatusCreated, `{"1":{"body":"e30=","logID":"00"}}`),
		"conflict with none":  answerWith(http.StatusConflict, ""),
		"sends us elsewhere":  http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP,
		"hangs up":            func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a log ID in base64":  answerWith(http.StatusCreated, strings.Replace(logAnswer(), hex.EncodeToString([]byte("log")), "bG9n!", 1)),
		"version 2's answers": answerWith(http.StatusCreated, `{"logIndex":"1"}`),
	} {
		if _, err := signBlob(t, log, Services{Retries: -1}); !errors.Is(err, ErrService) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTokenStays: the identity token is for Fulcio, and not for where it redirects.
func TestTokenStays(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("asked with %q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	fulcio := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusPermanentRedirect))
	t.Cleanup(fulcio.Close)
	s, err := Keyless(KeylessOptions{
		FulcioURL: fulcio.URL, Token: func(context.Context) (string, error) { return idToken(), nil },
		Services: Services{TSAURL: "https://unused.invalid", Retries: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SignBlob(t.Context(), []byte("x")); err == nil || !strings.Contains(err.Error(), "status 308") {
		t.Errorf("got %v", err)
	}
}
