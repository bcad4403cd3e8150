package ociregistry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/jsonbound"
)

// pages asks for one page after the other and hands each to take, which returns
// the query of the next page where the registry names none.
func (r *Repository) pages(ctx context.Context, path string, header map[string]string, take func(h http.Header, content []byte) (next string, err error)) error {
	q := request{method: http.MethodGet, path: path, header: header}
	asked := map[string]bool{}
	total := 0
	for page := 0; ; page++ {
		if page == pageLimit {
			return fmt.Errorf("%w: a listing of over %d pages", ErrTooLarge, pageLimit)
		}
		content, resp, err := r.document(ctx, q, pageBytes) //nolint:bodyclose // document has read and closed it
		if err != nil {
			return err
		}
		next, err := nextPage(resp)
		if err != nil {
			return err
		}
		if total += len(content); total > listingLimit {
			return fmt.Errorf("%w: a listing of over %d bytes", ErrTooLarge, listingLimit)
		}
		query, err := take(resp.Header, content)
		if err != nil {
			return err
		}
		if next == "" && query != "" {
			guess := *resp.Request.URL
			guess.RawQuery = query
			next = guess.String()
		}
		if next == "" {
			return nil
		}
		if asked[next] {
			return fmt.Errorf("%w: the next page of a listing is one that was there already", ErrAnswer)
		}
		asked[next] = true
		q.url = next
	}
}

// nextPage reads the link to the next page, RFC 8288, in the ways that registries
// write it: with or without host, several of them, with or without quotes. A link
// to another host is not followed. One with another scheme, or another port than
// the usual one, is that of a registry behind a proxy that does not know how it is
// reached.
func nextPage(resp *http.Response) (string, error) {
	for _, header := range resp.Header.Values("Link") {
		rest := header
		for {
			_, after, ok := strings.Cut(rest, "<")
			if !ok {
				break
			}
			target, params, ok := strings.Cut(after, ">")
			if !ok {
				return "", fmt.Errorf("%w: Link %q", ErrAnswer, line(header))
			}
			rest = params
			params, _, _ = strings.Cut(params, "<")
			if !isNext(params) {
				continue
			}
			next, err := sameHost(resp.Request.URL, target)
			if err != nil {
				return "", fmt.Errorf("the next page of a listing: %w", err)
			}
			return next.String(), nil
		}
	}
	return "", nil
}

// isNext reports whether the parameters of a link say that it leads to the next
// page; a link without any does, too.
func isNext(params string) bool {
	named := false
	for param := range strings.FieldsFuncSeq(params, func(r rune) bool { return r == ';' || r == ',' }) {
		name, value, ok := strings.Cut(strings.TrimSpace(param), "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(name), "rel") {
			continue
		}
		named = true
		if slices.Contains(strings.Fields(strings.ToLower(strings.Trim(strings.TrimSpace(value), `"'`))), "next") {
			return true
		}
	}
	return !named
}

// sameHost resolves an address that a registry names in an answer, and refuses one
// on another host, which is not to get credentials. Scheme and port stay those of
// the request.
func sameHost(asked *url.URL, target string) (*url.URL, error) {
	if strings.HasPrefix(target, asked.Host+"/") { // neither absolute nor relative
		target = asked.Scheme + "://" + target
	}
	to, err := asked.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("%w: address %q", ErrAnswer, line(target))
	}
	usual := func(u *url.URL) bool { return u.Port() == "" || u.Port() == "80" || u.Port() == "443" }
	if !strings.EqualFold(to.Hostname(), asked.Hostname()) || to.Port() != asked.Port() && (!usual(to) || !usual(asked)) {
		return nil, fmt.Errorf("%w: it leads from %s to another host, %s", ErrAnswer, asked.Host, line(to.Host))
	}
	to.Scheme, to.Host, to.User = asked.Scheme, asked.Host, nil
	return to, nil
}

// tags lists the tags. cut says that there may be more: the registry ends at
// exactly as many as were asked for, and shows no further ones.
func (r *Repository) tags(ctx context.Context) (all []string, cut bool, err error) {
	seen := map[string]bool{}
	err = r.pages(ctx, fmt.Sprintf("tags/list?n=%d", tagPageSize), nil, func(h http.Header, content []byte) (string, error) {
		var page struct {
			Tags []string `json:"tags"`
		}
		if err := jsonbound.Check(content, tagLimit+listingValues); err != nil {
			return "", fmt.Errorf("%w: a list of tags: %w", ErrTooLarge, err)
		}
		if err := json.Unmarshal(content, &page); err != nil {
			return "", fmt.Errorf("%w: a list of tags: %w", ErrAnswer, err)
		}
		before := len(all)
		for _, tag := range page.Tags {
			if !seen[tag] {
				seen[tag] = true
				all = append(all, tag)
			}
		}
		if len(all) > tagLimit {
			return "", fmt.Errorf("%w: over %d tags", ErrTooLarge, tagLimit)
		}
		full := len(page.Tags) == tagPageSize
		cut = full && h.Get("Link") == "" && len(all) == before
		if full && len(all) > before {
			return url.Values{"n": {fmt.Sprint(tagPageSize)}, "last": {page.Tags[len(page.Tags)-1]}}.Encode(), nil
		}
		return "", nil
	})
	if len(all) >= tagPageSize && err != nil && isMissingCall(statusOf(err)) {
		cut, err = true, nil // it knows no further pages
	}
	return all, cut, err
}

// referrers asks the referrers API. known is false where the registry does not
// have it.
func (r *Repository) referrers(ctx context.Context, subject digest.Digest) (all []ocispec.Descriptor, known bool, err error) {
	known = true
	err = r.pages(ctx, "referrers/"+subject.String(), map[string]string{"Accept": ocispec.MediaTypeImageIndex}, func(_ http.Header, content []byte) (string, error) {
		page, err := decodeReferrers(content)
		if err != nil {
			return "", err
		}
		if all = append(all, page...); len(all) > referrerLimit {
			return "", fmt.Errorf("%w: over %d referrers", ErrTooLarge, referrerLimit)
		}
		return "", nil
	})
	if len(all) == 0 && (isMissingCall(statusOf(err)) || errors.Is(err, errNoIndex) || errors.Is(err, ErrPage)) {
		return nil, false, nil
	}
	return all, known, err
}

// errNoIndex is a whole answer of something that is not the referrers API.
var errNoIndex = errors.New("no index of referrers")

func decodeReferrers(content []byte) ([]ocispec.Descriptor, error) {
	var index struct {
		Manifests *[]ocispec.Descriptor `json:"manifests"`
	}
	if err := jsonbound.Check(content, referrerLimit*listingValues); err != nil {
		return nil, fmt.Errorf("%w: a list of referrers: %w", ErrTooLarge, err)
	}
	// What breaks off may be anything, so it is no answer of something else.
	if err := json.Unmarshal(content, &index); err != nil {
		return nil, fmt.Errorf("%w: a list of referrers: %w", ErrAnswer, err)
	}
	if index.Manifests == nil {
		return nil, errNoIndex
	}
	for _, entry := range *index.Manifests {
		if err := artifact.CheckDescriptor(entry); err != nil {
			return nil, fmt.Errorf("%w: a list of referrers: %w", ErrAnswer, err)
		}
	}
	return *index.Manifests, nil
}

// taggedReferrers reads the list that clients keep under a tag where the registry
// has no referrers API. Some registries take that tag for the digest that it is
// made of, and answer the subject itself.
func (r *Repository) taggedReferrers(ctx context.Context, subject digest.Digest) ([]ocispec.Descriptor, error) {
	desc, err := r.resolve(ctx, artifact.ReferrersTag(subject))
	if errors.Is(err, ErrNotFound) || err == nil && (desc.Digest == subject || desc.MediaType != ocispec.MediaTypeImageIndex) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	content, err := r.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		return nil, err
	}
	found, err := decodeReferrers(content)
	if err != nil {
		return nil, fmt.Errorf("tag %s: %w: %w", artifact.ReferrersTag(subject), ErrAnswer, err)
	}
	if len(found) > referrerLimit {
		return nil, fmt.Errorf("%w: over %d referrers", ErrTooLarge, referrerLimit)
	}
	return found, nil
}
