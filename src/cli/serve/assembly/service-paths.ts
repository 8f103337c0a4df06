import type { ServicePath } from '../../../core/operations/http/service-path.ts';
import { assetPath } from '../../../modules/assets/upload/asset-upload.ts';
import { consolePath, publicPath } from '../../../modules/console/paths.ts';
import { docsPath } from '../../../modules/docs/path.ts';
import { previewPath } from '../../../modules/drafts/preview-answer.ts';
import { loginPath } from '../../../modules/login/path.ts';
import { mcpPath } from '../../../modules/mcp/endpoint.ts';

/** What modules answer below `{base}/svc1` beside operations. */
export const servicePaths: readonly ServicePath[] = [
  loginPath,
  consolePath,
  docsPath,
  previewPath,
  publicPath,
  mcpPath,
  assetPath,
];
