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

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// PushBlob uploads a blob unless it is there, and reports whether it did. open
// is called anew for every attempt. A broken upload goes on where the registry
// says that it broke off (distribution-spec v1.1.1, "Pushing a blob in
// chunks"), or starts again where the registry does not say.
func (r *Repository) PushBlob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (bool, error) {
	ref := r.at(desc.Digest.String())
	u := &upload{repo: r, desc: desc, open: open}
	for attempt := 0; ; attempt++ {
		// Looked for at every attempt: perhaps only the answer was lost.
		if ok, err := r.Exists(ctx, desc); err != nil || ok {
			return ok && attempt > 0, err
		}
		err := u.run(ctx)
		if err == nil {
			return true, nil
		}
		if attempt >= r.client.retries.count || ctx.Err() != nil || !u.worthRepeating(err) {
			return false, wrap("push blob", ref, err)
		}
		wait := r.client.retries.wait(attempt)
		r.client.logger.Info("blob upload failed, repeating", "blob", ref, "error", plaintext.Redact(err.Error()), "wait", wait)
		if err := sleep(ctx, wait); err != nil {
			return false, wrap("push blob", ref, err)
		}
	}
}

// upload is the way of one blob to the registry, in as many attempts as it takes.
type upload struct {
	repo *Repository
	desc ocispec.Descriptor
	open func() (io.ReadCloser, error)
	// location is where the registry takes the bytes, nil until it has opened a
	// session; cookies keep the session on the same server behind a balancer.
	location *url.URL
	cookies  []*http.Cookie
	// authorization is what the registry took when it opened the session: a body
	// that is a stream cannot be sent a second time with another one.
	authorization string
	// chunked says that the registry takes bytes by PATCH only.
	chunked bool
	expired bool
}

// worthRepeating covers what passes, and a token that ran out between the opening
// of the session and its end, once.
func (u *upload) worthRepeating(err error) bool {
	if errors.Is(err, ErrUnauthorized) && u.location != nil && !u.expired {
		u.expired, u.location = true, nil
		return true
	}
	kind := kindOf(err)
	if errors.Is(kind, ErrPage) || errors.Is(kind, ErrStorage) {
		return false
	}
	return errors.Is(kind, ErrUnavailable) || errors.Is(kind, ErrRateLimited) || brokeOff(err)
}

// run goes on with the session, if there is one, or starts one.
func (u *upload) run(ctx context.Context) error {
	if u.location != nil {
		err := u.resume(ctx)
		if err == nil || !errors.Is(err, errNoResume) {
			return err
		}
		u.repo.client.logger.Info("the registry does not go on with the upload, starting again", "digest", u.desc.Digest, "error", err)
	}
	done, err := u.start(ctx)
	if err != nil || done {
		return err
	}
	if !u.chunked {
		err = u.send(ctx, http.MethodPut, 0)
		if err == nil || !isMissingCall(statusOf(err)) && statusOf(err) != http.StatusUnsupportedMediaType && statusOf(err) != http.StatusLengthRequired {
			return err
		}
		// It may take bytes by PATCH only.
		u.chunked = true
		u.repo.client.logger.Debug("the registry takes no blob in one piece", "digest", u.desc.Digest, "error", err)
		if done, err := u.start(ctx); err != nil || done {
			return err
		}
	}
	if chunkErr := u.send(ctx, http.MethodPatch, 0); chunkErr != nil {
		return chunkErr
	}
	return u.finish(ctx)
}

// start opens a session. done says that the registry had the blob after all.
func (u *upload) start(ctx context.Context) (done bool, err error) {
	u.location, u.cookies = nil, nil
	resp, err := u.repo.do(ctx, request{method: http.MethodPost, path: "blobs/uploads/", push: true})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusCreated && resp.Header.Get("Docker-Content-Digest") == u.desc.Digest.String():
		return true, nil
	case resp.StatusCode != http.StatusAccepted:
		return false, fmt.Errorf("%w: status %d in place of an upload", ErrAnswer, resp.StatusCode)
	}
	u.authorization = resp.Request.Header.Get("Authorization")
	if err := u.follow(resp); err != nil {
		return false, err
	}
	if u.location == nil {
		return false, fmt.Errorf("%w: it opened an upload and did not say where: no Location", ErrAnswer)
	}
	return false, nil
}

// follow notes where the next bytes go.
func (u *upload) follow(resp *http.Response) error {
	if cookies := resp.Cookies(); len(cookies) > 0 {
		u.cookies = cookies
	}
	target := resp.Header.Get("Location")
	if target == "" {
		return nil
	}
	location, err := sameHost(resp.Request.URL, target)
	if err != nil {
		return fmt.Errorf("the location of an upload: %w", err)
	}
	u.location = location
	return nil
}

// errNoResume is the reason to start an upload again.
var errNoResume = errors.New("upload not resumable")

// resume asks how much has arrived and sends the rest.
func (u *upload) resume(ctx context.Context) error {
	offset, err := u.arrived(ctx)
	if err != nil {
		return err
	}
	if offset >= u.desc.Size {
		return fmt.Errorf("%w: %d bytes of %d have arrived", errNoResume, offset, u.desc.Size)
	}
	u.repo.client.logger.Info("going on with a broken upload", "digest", u.desc.Digest, "from", offset, "size", u.desc.Size)
	method := http.MethodPut
	if u.chunked {
		method = http.MethodPatch
	}
	if err := u.send(ctx, method, offset); err != nil {
		if statusOf(err) != 0 {
			return fmt.Errorf("%w: %w", errNoResume, err)
		}
		return err
	}
	if u.chunked {
		return u.finish(ctx)
	}
	return nil
}

// send sends the bytes from an offset on. By PUT, the blob is complete with them,
// unless the registry says that it only took note.
func (u *upload) send(ctx context.Context, method string, offset int64) error {
	body, err := u.open()
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.CopyN(io.Discard, body, offset); err != nil {
		return err
	}
	q := u.request(method, method == http.MethodPut)
	q.body, q.length = body, u.desc.Size-offset
	q.header["Content-Type"] = "application/octet-stream"
	if offset > 0 {
		q.header["Content-Range"] = fmt.Sprintf("%d-%d", offset, u.desc.Size-1)
	}
	resp, err := u.repo.do(ctx, q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if method == http.MethodPut && resp.StatusCode != http.StatusAccepted {
		return u.confirm(ctx, resp)
	}
	if err := u.follow(resp); err != nil {
		return err
	}
	if method == http.MethodPut {
		return u.finish(ctx)
	}
	return nil
}

// finish says that all bytes are there.
func (u *upload) finish(ctx context.Context) error {
	resp, err := u.repo.do(ctx, u.request(http.MethodPut, true))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return u.confirm(ctx, resp)
}

// confirm takes an upload for done if the registry says so in the words of the
// specification, else if the blob is there.
func (u *upload) confirm(ctx context.Context, resp *http.Response) error {
	if resp.StatusCode == http.StatusCreated {
		return nil
	}
	there, err := u.repo.hasBlob(ctx, u.desc)
	if err == nil && !there {
		err = fmt.Errorf("%w: it does not finish the upload: status %d", ErrAnswer, resp.StatusCode)
	}
	return err
}

// request is one to the session.
func (u *upload) request(method string, last bool) request {
	to := *u.location
	if last {
		query := to.Query()
		query.Set("digest", u.desc.Digest.String())
		to.RawQuery = query.Encode()
	}
	q := request{method: method, url: to.String(), push: true, header: map[string]string{}}
	if u.authorization != "" {
		q.header["Authorization"] = u.authorization
	}
	var cookies []string
	for _, c := range u.cookies {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	if len(cookies) > 0 {
		q.header["Cookie"] = strings.Join(cookies, "; ")
	}
	return q
}

// arrived returns how many bytes the registry has.
func (u *upload) arrived(ctx context.Context) (offset int64, err error) {
	resp, err := u.repo.do(ctx, u.request(http.MethodGet, false))
	if err != nil {
		if statusOf(err) != 0 {
			return 0, fmt.Errorf("%w: %w", errNoResume, err)
		}
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return 0, fmt.Errorf("%w: %s", errNoResume, resp.Status)
	}
	// "0-0" is also how registries say that nothing has arrived.
	last, err := strconv.ParseInt(strings.TrimPrefix(resp.Header.Get("Range"), "0-"), 10, 64)
	if err != nil || last <= 0 {
		return 0, fmt.Errorf("%w: range %q", errNoResume, line(resp.Header.Get("Range")))
	}
	if err := u.follow(resp); err != nil {
		return 0, fmt.Errorf("%w: %w", errNoResume, err)
	}
	if authorization := resp.Request.Header.Get("Authorization"); authorization != "" {
		u.authorization = authorization
	}
	return last + 1, nil
}
