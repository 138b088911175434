package s3store

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// judge tells what is known after a request that ended in an error.
type judge struct{ credentials *credentials }

func (j judge) error(err error) (retry.Verdict, error) {
	status := 0
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	var api smithy.APIError
	switch {
	case errors.Is(err, errCredentials):
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrDenied, err)
	case !errors.As(err, &api):
		return retry.ByStatus(status, err)
	}
	switch code := api.ErrorCode(); code {
	case "ConditionalRequestConflict", "OperationAborted": // two puts met, and this one did nothing
		return retry.Untouched, fmt.Errorf("%w: %w", objstore.ErrBusy, err)
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidAccessKeyId", "InvalidToken":
		// The keys have ended, or were replaced: the repeat has those that the chain finds then.
		j.credentials.forget()
		return retry.Untouched, fmt.Errorf("%w: %w", objstore.ErrDenied, err)
	case "RequestTimeout", "Conflict": // the latter: a 409 to a HEAD, whose answer has no body to hold a code
		return retry.Unknown, fmt.Errorf("%w: %w", objstore.ErrBusy, err)
	case "EntityTooLarge":
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrTooLarge, err)
	case "NoSuchKey":
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrNotFound, err)
	case "NoSuchBucket", "PermanentRedirect", "AuthorizationHeaderMalformed": // the latter two: it is in another region
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrNoBucket, err)
	case "XAdminUserNotFound": // how versitygw, with a 404, says that it does not know the key
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrDenied, err)
	case "NoSuchUpload": // of a completion that was repeated, or of an upload that somebody removed
		return retry.Definite, err
	default:
		if status == http.StatusNotFound && code != "NotFound" {
			return retry.Definite, err // nothing that an object's absence explains
		}
		return retry.ByStatus(status, err)
	}
}
