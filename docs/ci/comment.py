#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps one comment on a pull request (GitHub) or merge request (GitLab) up to date: comment.py FILE.md

The first time it writes the comment, later it rewrites it, so that twenty pushes leave one comment. Without a request, or without
a token that may write (pull requests from forks have none), it says so and ends with 0: a comment is no reason to fail a build.

GitHub: GITHUB_TOKEN, and what every workflow has: GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_EVENT_PATH.
GitLab: RANKSCOPE_COMMENT_TOKEN (a project access token with the scope `api`; CI_JOB_TOKEN may not write notes), and what every
job has: CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID.
"""

import http.client
import json
import os
import pathlib
import sys
import urllib.request

MARK = "<!-- rankscope step time -->"
TIMEOUT_S = 30


class GitHub:
    def __init__(self):
        event = json.loads(pathlib.Path(os.environ["GITHUB_EVENT_PATH"]).read_text())
        number = event.get("pull_request", {}).get("number")
        token = os.environ.get("GITHUB_TOKEN")
        self.missing = "no pull request" if not number else "" if token else "GITHUB_TOKEN is not set"
        repository = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}"
        self.comments = f"{repository}/issues/{number}/comments"
        self.one = repository + "/issues/comments/{}"
        self.headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        self.rewrite, self.longest = "PATCH", 65_536


class GitLab:
    def __init__(self):
        number = os.environ.get("CI_MERGE_REQUEST_IID")
        token = os.environ.get("RANKSCOPE_COMMENT_TOKEN")
        self.missing = "no merge request" if not number else "" if token else "RANKSCOPE_COMMENT_TOKEN is not set"
        self.comments = f"{os.environ['CI_API_V4_URL']}/projects/{os.environ['CI_PROJECT_ID']}/merge_requests/{number}/notes"
        self.one = self.comments + "/{}"
        self.headers = {"PRIVATE-TOKEN": token or ""}
        self.rewrite, self.longest = "PUT", 1_000_000


def ask(service, method, url, body=None):
    data = None if body is None else json.dumps({"body": body}).encode()
    request = urllib.request.Request(url, data, {**service.headers, "Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return json.load(answer)


def present_comment(service):
    """The id of the comment that was written before; None where there is none."""
    page = 1
    while rows := ask(service, "GET", f"{service.comments}?per_page=100&page={page}"):
        for row in rows:
            if (row["body"] or "").startswith(MARK):
                return row["id"]
        page += 1
    return None


def main(file):
    service = GitHub() if "GITHUB_EVENT_PATH" in os.environ else GitLab() if "CI_API_V4_URL" in os.environ else None
    if service is None or service.missing:
        print(f"no comment: {service.missing if service else 'neither GitHub nor GitLab runs this'}", file=sys.stderr)
        return
    body = MARK + "\n" + pathlib.Path(file).read_text()
    if len(body) > service.longest:
        body = body[: service.longest - 100].rsplit("\n", 1)[0] + "\n\nThe rest is in the report of the job.\n"
    try:
        present = present_comment(service)
        if present is None:
            ask(service, "POST", service.comments, body)
        else:
            ask(service, service.rewrite, service.one.format(present), body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        print(f"no comment: {error}", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
