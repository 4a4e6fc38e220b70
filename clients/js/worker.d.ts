/** The script of a Web Worker: it exports nothing, and is asked through sottovoce/remote. */
export {};
