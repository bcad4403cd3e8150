package signer

import "errors"

// What callers branch on.
var (
	// ErrKey: not a private key that can sign.
	ErrKey = errors.New("not a usable private key")
	// ErrPassword: the key is encrypted and the password does not open it.
	ErrPassword = errors.New("wrong password for the private key")
	// ErrOptions: the options are incomplete or contradict themselves.
	ErrOptions = errors.New("unusable signing options")
	// ErrToken: the identity token cannot be used.
	ErrToken = errors.New("unusable identity token")
	// ErrTrustedRoot: what was signed does not verify with the trusted root.
	ErrTrustedRoot = errors.New("the signature does not verify with the trusted root")
	// ErrService: Fulcio, Rekor or the timestamp authority did not do its part.
	ErrService = errors.New("sigstore service failed")
	// ErrInput: what is to be signed is not signable, such as a predicate that
	// is not JSON.
	ErrInput = errors.New("not signable")
)
