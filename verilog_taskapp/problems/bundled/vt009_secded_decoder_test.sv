// Bench of vt009_secded_decoder: Extended Hamming decoder.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_data;
    int errortime_data;
    int errors_corrected;
    int errortime_corrected;
    int errors_uncorrectable;
    int errortime_uncorrectable;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic [7:0] code;
  wire  [3:0] data_ref;
  wire  [3:0] data_dut;
  wire        corrected_ref;
  wire        corrected_dut;
  wire        uncorrectable_ref;
  wire        uncorrectable_dut;

  RefModule good1 (
    .code(code),
    .data(data_ref),
    .corrected(corrected_ref),
    .uncorrectable(uncorrectable_ref)
  );

  TopModule top_module1 (
    .code(code),
    .data(data_dut),
    .corrected(corrected_dut),
    .uncorrectable(uncorrectable_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [3:0] open_data = data_ref ^ data_ref;
  wire        match_data = (data_dut ^ open_data) === (data_ref ^ open_data);
  wire        open_corrected = corrected_ref ^ corrected_ref;
  wire        match_corrected = (corrected_dut ^ open_corrected) === (corrected_ref ^ open_corrected);
  wire        open_uncorrectable = uncorrectable_ref ^ uncorrectable_ref;
  wire        match_uncorrectable = (uncorrectable_dut ^ open_uncorrectable) === (uncorrectable_ref ^ open_uncorrectable);
  wire        tb_match = match_data && match_corrected && match_uncorrectable;

  always @(posedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_data) begin
      if (stats1.errors_data == 0) stats1.errortime_data = $time;
      stats1.errors_data = stats1.errors_data + 1;
    end
    if (!match_corrected) begin
      if (stats1.errors_corrected == 0) stats1.errortime_corrected = $time;
      stats1.errors_corrected = stats1.errors_corrected + 1;
    end
    if (!match_uncorrectable) begin
      if (stats1.errors_uncorrectable == 0) stats1.errortime_uncorrectable = $time;
      stats1.errors_uncorrectable = stats1.errors_uncorrectable + 1;
    end
  end

  function [7:0] encode(input [3:0] value);
    reg [7:0] word;
    begin
      word = 8'd0;
      {word[7], word[6], word[5], word[3]} = value;
      word[1] = word[3] ^ word[5] ^ word[7];
      word[2] = word[3] ^ word[6] ^ word[7];
      word[4] = word[5] ^ word[6] ^ word[7];
      word[0] = ^word[7:1];
      encode = word;
    end
  endfunction

  integer i;
  initial begin
    code <= 8'd0;
    for (i = 0; i < 256; i = i + 1) @(negedge clk) code <= i[7:0] ^ 8'ha5;
    // Good words, then words with one and with two flipped bits.
    repeat (40) @(negedge clk) code <= encode($random);
    repeat (100) @(negedge clk) code <= encode($random) ^ (8'd1 << ($urandom % 8));
    repeat (100) @(negedge clk)
      code <= encode($random) ^ (8'd1 << ($urandom % 8)) ^ (8'd1 << ($urandom % 8));
    @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_data != 0)
      $display("Hint: Output 'data' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_data, stats1.errortime_data);
    else
      $display("Hint: Output 'data' has no mismatches.");
    if (stats1.errors_corrected != 0)
      $display("Hint: Output 'corrected' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_corrected, stats1.errortime_corrected);
    else
      $display("Hint: Output 'corrected' has no mismatches.");
    if (stats1.errors_uncorrectable != 0)
      $display("Hint: Output 'uncorrectable' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_uncorrectable, stats1.errortime_uncorrectable);
    else
      $display("Hint: Output 'uncorrectable' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
