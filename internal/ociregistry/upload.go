package ociregistry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// PushBlob uploads a blob unless it is there, and reports whether it did. open
// is called anew for every attempt. A broken upload goes on where the registry
// says that it broke off (distribution-spec v1.1.1, "Pushing a blob in
// chunks"), or starts again where the registry does not say.
func (r *Repository) PushBlob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (bool, error) {
	ref := r.at(desc.Digest.String())
	session := &uploadSession{}
	for attempt := 0; ; attempt++ {
		// Looked for at every attempt: perhaps only the answer was lost.
		if ok, err := r.Exists(ctx, desc); err != nil || ok {
			return ok && attempt > 0, err
		}
		err := r.upload(ctx, desc, open, session)
		if err == nil {
			return true, nil
		}
		kind := kindOf(err)
		again := attempt < r.client.retries.count && ctx.Err() == nil &&
			(errors.Is(kind, ErrUnavailable) || errors.Is(kind, ErrRateLimited) || brokeOff(err))
		if !again {
			return false, wrap("push blob", ref, err)
		}
		wait := r.client.retries.wait(attempt)
		r.client.logger.Info("blob upload failed, repeating", "blob", ref, "error", err, "wait", wait)
		if err := sleep(ctx, wait); err != nil {
			return false, wrap("push blob", ref, err)
		}
	}
}

// upload goes on with the session, if there is one, or starts one.
func (r *Repository) upload(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error), session *uploadSession) error {
	if session.location != nil {
		err := r.resumeUpload(ctx, desc, open, session)
		if err == nil || !errors.Is(err, errNoResume) {
			return err
		}
		r.client.logger.Info("the registry does not go on with the upload, starting again", "digest", desc.Digest, "error", err)
		session.location = nil
	}
	body, err := open()
	if err != nil {
		return err
	}
	defer body.Close()
	return r.remote.Blobs().Push(context.WithValue(ctx, sessionKey{}, session), desc, body)
}

// uploadSession is where the registry takes the bytes of one blob.
type uploadSession struct {
	// location is nil until the registry has opened the session.
	location *url.URL
}

type sessionKey struct{}

// sessionClient notes the location of an upload session, which oras-go keeps to
// itself.
type sessionClient struct{ remote.Client }

// Do implements remote.Client.
func (c sessionClient) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.Client.Do(req)
	session, ok := req.Context().Value(sessionKey{}).(*uploadSession)
	if err != nil || !ok || req.Method != http.MethodPost || resp.StatusCode != http.StatusAccepted {
		return resp, err
	}
	session.location = sameOrigin(resp)
	return resp, nil
}

// sameOrigin returns the location of an answer, or nil if it is none or is on
// another host, which is not to get credentials.
func sameOrigin(resp *http.Response) *url.URL {
	location, err := resp.Location()
	if err != nil || location.Host != resp.Request.URL.Host || location.Scheme != resp.Request.URL.Scheme {
		return nil
	}
	return location
}

// errNoResume is the reason to start an upload again.
var errNoResume = errors.New("upload not resumable")

// resumeUpload asks how much has arrived and sends the rest.
func (r *Repository) resumeUpload(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error), session *uploadSession) error {
	ctx = auth.AppendRepositoryScope(ctx, r.remote.Reference, auth.ActionPull, auth.ActionPush)
	offset, authorization, err := r.arrived(ctx, session)
	if err != nil {
		return err
	}
	if offset >= desc.Size {
		return fmt.Errorf("%w: %d bytes of %d have arrived", errNoResume, offset, desc.Size)
	}
	body, err := open()
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.CopyN(io.Discard, body, offset); err != nil {
		return err
	}
	to := *session.location
	query := to.Query()
	query.Set("digest", desc.Digest.String())
	to.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, to.String(), body)
	if err != nil {
		return err
	}
	req.ContentLength = desc.Size - offset
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Content-Range", fmt.Sprintf("%d-%d", offset, desc.Size-1))
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	r.client.logger.Info("going on with a broken upload", "digest", desc.Digest, "from", offset, "size", desc.Size)
	resp, err := r.remote.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("%w: %s", errNoResume, resp.Status)
	}
	return nil
}

// arrived returns how many bytes the registry has, and the authorization that
// it took.
func (r *Repository) arrived(ctx context.Context, session *uploadSession) (offset int64, authorization string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, session.location.String(), nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := r.remote.Client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return 0, "", fmt.Errorf("%w: %s", errNoResume, resp.Status)
	}
	// "0-0" is also how registries say that nothing has arrived.
	last, err := strconv.ParseInt(strings.TrimPrefix(resp.Header.Get("Range"), "0-"), 10, 64)
	if err != nil || last <= 0 {
		return 0, "", fmt.Errorf("%w: range %q", errNoResume, resp.Header.Get("Range"))
	}
	if resp.Header.Get("Location") != "" {
		if session.location = sameOrigin(resp); session.location == nil {
			return 0, "", fmt.Errorf("%w: location %q", errNoResume, resp.Header.Get("Location"))
		}
	}
	return last + 1, resp.Request.Header.Get("Authorization"), nil
}
