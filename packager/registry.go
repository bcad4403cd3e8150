package packager

import (
	"context"
	"fmt"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// Content is where an artifact is read from: a repository or a layout.
type Content interface {
	// Name is "host[:port]/path" or a folder.
	Name() string
	// Fetch opens content; the last Read fails unless size and digest are as
	// described.
	Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error)
	// FetchAll returns content of at most limit bytes, verified.
	FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error)
	// Referrers returns the manifests whose subject is the given one.
	Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error)
}

// Tags finds what tags point to.
type Tags interface {
	// Resolve returns what a tag or digest stands for.
	Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error)
	// Tags returns all tags.
	Tags(ctx context.Context) ([]string, error)
}

// Manifest is a manifest with its bytes.
type Manifest = ociregistry.Manifest

// Target takes content.
type Target interface {
	// Exists says whether content is there.
	Exists(ctx context.Context, desc ocispec.Descriptor) (bool, error)
	// PushBlob stores a blob unless it is there, and says whether it did. open
	// may be called several times.
	PushBlob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (uploaded bool, err error)
	// PushManifest stores a manifest and points tags at it. If the manifest
	// has a subject, it is among the subject's referrers afterwards.
	PushManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error
	// Attach stores manifests that have one subject, so that they are among its
	// referrers. Where the registry lists those under a tag, that is written once.
	Attach(ctx context.Context, subject ocispec.Descriptor, referrers ...Manifest) error
	// Tag points a tag at a manifest that is there.
	Tag(ctx context.Context, desc ocispec.Descriptor, tag string) error
}

// Repository is one repository of a registry; [Connect] opens one.
type Repository interface {
	Content
	Tags
	Target
	Mounter
	// TagNew points a tag that is not there yet at a manifest that is. Where the
	// registry can, it leaves a tag alone that another client wrote meanwhile, and
	// the error says so.
	TagNew(ctx context.Context, desc ocispec.Descriptor, tag string) error
}

// Event is a step that was done or begins, for those who show progress.
type Event struct {
	// Kind is one of the constants below.
	Kind EventKind
	// Subject is the platform, tag or digest that the event is about.
	Subject string
	// Size in bytes, where there is one, and how many of them are Done:
	// EventPacking, EventUploading and EventReading come again and again until all
	// are.
	Size, Done int64
	// Signed is what was signed about Subject: "signature" for the artifact
	// itself, else the predicate type of an attestation. Empty for other events.
	Signed string
}

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	// EventPacking: the files of a platform are about to be compressed; Size is
	// theirs.
	EventPacking EventKind = "packing"
	// EventPacked: the layer of a platform is compressed.
	EventPacked EventKind = "packed"
	// EventUnlicensed: the bills of materials do not say the licences of some
	// modules, which Subject names.
	EventUnlicensed EventKind = "unlicensed"
	// EventReading: the layer of a platform is about to be fetched.
	EventReading EventKind = "reading"
	// EventUploading: the layer of a platform is about to be uploaded.
	EventUploading EventKind = "uploading"
	// EventUploaded and EventPresent: a blob was uploaded, or was there.
	EventUploaded EventKind = "uploaded"
	EventPresent  EventKind = "present"
	// EventReferrer: a document hangs off a manifest now.
	EventReferrer EventKind = "attached"
	// EventSigned: a manifest has a new signature or attestation.
	EventSigned EventKind = "signed"
	// EventSignedBefore: it had that one by the same key, and keeps it.
	EventSignedBefore EventKind = "there"
	// EventTagged and EventTagKept: a tag was moved, or is where it must be.
	EventTagged  EventKind = "tagged"
	EventTagKept EventKind = "kept"
)

// reporting returns a function that reports how far the event is.
func (e Event) reporting(report func(Event)) func(done int64) {
	return func(done int64) {
		e.Done = done
		report(e)
	}
}

func blobEvent(desc ocispec.Descriptor, uploaded bool) Event {
	if uploaded {
		return Event{Kind: EventUploaded, Subject: desc.Digest.String(), Size: desc.Size}
	}
	return Event{Kind: EventPresent, Subject: desc.Digest.String(), Size: desc.Size}
}

// reporter returns a function that may always be called.
func reporter(f func(Event)) func(Event) {
	if f == nil {
		return func(Event) {}
	}
	return f
}

// ConnectOptions say how to speak to registries: credentials, certificates,
// retries. The zero value reads public repositories over TLS.
type ConnectOptions = ociregistry.Options

// Credential is what [ConnectOptions] give a registry; the zero value means none.
type Credential = ociregistry.Credential

// TLSFiles names certificate files in [ConnectOptions].
type TLSFiles = ociregistry.TLSFiles

// Connect opens a repository, "host[:port]/path". It makes no request, so it
// says nothing about whether the repository exists. A malformed name is
// [ErrReference].
func Connect(name string, opts ConnectOptions) (Repository, error) {
	repository, identifier, err := ParseReference(name)
	if err != nil {
		return nil, err
	}
	if identifier != "" {
		return nil, fmt.Errorf("%w %q: leave out what follows the repository", ErrReference, name)
	}
	client, err := ociregistry.NewClient(opts)
	if err != nil {
		return nil, err
	}
	repo, err := client.Repository(repository)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReference, err)
	}
	return repo, nil
}

// Mounter takes blobs over from another repository of the same registry, so
// that they need not be sent.
type Mounter interface {
	// Mount says whether the registry took the blob over from the repository,
	// "path" without the host. A refusal is no error.
	Mount(ctx context.Context, desc ocispec.Descriptor, from string) (bool, error)
}

// mounting is a repository that tries to mount what it does not have.
type mounting struct {
	Repository
	from []string
}

// withMounts returns repo if there is nothing to mount from.
func withMounts(repo Repository, from []string) Repository {
	if len(from) == 0 {
		return repo
	}
	return mounting{repo, from}
}

// PushBlob mounts the blob, or uploads it.
func (m mounting) PushBlob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (bool, error) {
	there, err := m.Exists(ctx, desc)
	if err != nil || there {
		return false, err
	}
	for _, from := range m.from {
		mounted, err := m.Mount(ctx, desc, from)
		if err != nil || mounted {
			return false, err
		}
	}
	return m.Repository.PushBlob(ctx, desc, open)
}
